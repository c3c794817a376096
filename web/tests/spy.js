// Goes before each script of a built page in a test: keeps every report before it is sealed, and of what an encoded one
// was made. It changes nothing that the page does: what is written where reports are put together is copied.
(() => {
  if (globalThis.spying) return; // a page and a worker have several scripts each
  globalThis.spying = true;
  const page = typeof document !== "undefined";
  const channel = new BroadcastChannel("spied");
  if (page) {
    globalThis.spied = [];
    channel.onmessage = ({ data }) => globalThis.spied.push(data);
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (asks, ...rest) {
      const counts = asks?.kind === "seal" && asks.task.asks.kind !== "train";
      if (counts) globalThis.spied.push({ words: asks.words.slice(), update: new Float32Array(), seed: new Uint8Array() });
      return post.call(this, asks, ...rest);
    };
  }
  let seed, update;
  const random = crypto.getRandomValues.bind(crypto);
  crypto.getRandomValues = (array) => {
    const drawn = random(array);
    if (array.byteLength === 32) seed = new Uint8Array(array);
    return drawn;
  };
  const typed = Object.getPrototypeOf(Uint8Array.prototype);
  const set = typed.set;
  typed.set = function (source, at = 0) {
    set.call(this, source, at);
    if (source instanceof Float32Array && this instanceof Float32Array) update = source.slice();
    // The last that is written of a report: what stands behind the coordinates.
    if (!(this instanceof Uint32Array) || !Array.isArray(source) || at === 0 || at + source.length !== this.length) return;
    const found = { words: this.slice(), update, seed };
    if (page) globalThis.spied.push(found);
    else channel.postMessage(found);
  };
})();
