// What pages do with script, all of it optional: bring what changed, fill in, move sliders, point at figures, type.
"use strict";

// -- what changed: the parts marked data-live are replaced by those of the same page, fetched again
const watched = document.querySelector("[data-changes]");
let source = null, mark = watched && watched.dataset.mark, busy = false, again = false;

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok && !(answer.headers.get("content-type") || "").startsWith("text/html")) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = page.getElementById("main");
    if (main && !page.querySelector("[data-live]")) {
      document.getElementById("main").replaceChildren(...main.childNodes);
    }
    for (const part of document.querySelectorAll("[data-live][id]")) {
      const found = page.getElementById(part.id);
      if (!found || found.innerHTML === part.innerHTML) continue;
      const open = [...part.querySelectorAll("details")].map((each) => each.open);
      const chosen = new Set([...part.querySelectorAll("input:checked")].map((each) => each.value));
      part.replaceChildren(...found.childNodes);
      part.querySelectorAll("details").forEach((each, at) => { each.open = open[at] || false; });
      part.querySelectorAll("input[type=checkbox]").forEach((each) => { each.checked = chosen.has(each.value); });
      if (found.hasAttribute("data-waiting")) part.setAttribute("data-waiting", ""); else part.removeAttribute("data-waiting");
    }
    prepare();
    fill();
    wait();
  } catch {
    // the server was ended: what is shown stays
  } finally {
    busy = false;
    if (again) { again = false; refresh(); }
  }
}

function listen() {
  if (!watched || source || document.hidden) return;
  const to = new URL(watched.dataset.changes, location.href);
  to.searchParams.set("known", mark);
  source = new EventSource(to);
  source.onmessage = (event) => { mark = JSON.parse(event.data).mark; refresh(); };
}

// A browser has few connections to one server: a page that nobody sees gives its own back.
document.addEventListener("visibilitychange", () => {
  if (document.hidden && source) { source.close(); source = null; } else { listen(); }
});
listen();

// Rows that the server is still reading.
function wait() {
  if (document.querySelector("[data-waiting]")) setTimeout(refresh, 700);
}
wait();

// -- the verified statement, which takes seconds the first time
async function fill() {
  for (const part of document.querySelectorAll("[data-fill]")) {
    try {
      const answer = await fetch(part.dataset.fill, { credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      part.replaceChildren(...page.body.childNodes);
      if (answer.status === 202) setTimeout(fill, 700);
    } catch { /* the server was ended */ }
  }
}
fill();

// -- figures: with the arrow keys from point to point, whose numbers are said below
function prepare() {
  for (const figure of document.querySelectorAll("svg.figure")) {
    if (figure.dataset.ready || !figure.querySelector(".hit")) continue;
    figure.dataset.ready = "1";
    figure.setAttribute("tabindex", "0");
    const said = document.createElement("p");
    said.className = "point";
    said.setAttribute("aria-live", "polite");
    figure.after(said);
    const points = [...figure.querySelectorAll(".hit")];
    let at = -1;
    const show = (to) => {
      if (points[at]) points[at].classList.remove("at");
      at = Math.min(Math.max(to, 0), points.length - 1);
      points[at].classList.add("at");
      said.textContent = points[at].querySelector("title").textContent;
    };
    figure.addEventListener("keydown", (event) => {
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: points.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show(to);
    });
    figure.addEventListener("pointermove", (event) => {
      if (event.target.classList.contains("hit")) show(points.indexOf(event.target));
    });
  }
  for (const wide of document.querySelectorAll(".wide")) {
    if (wide.scrollWidth > wide.clientWidth) wide.setAttribute("tabindex", "0");
  }
}
prepare();

// -- sliders: logarithmic, beside the numbers that they move
for (const form of document.querySelectorAll("form[data-to]")) {
  let asking = null;
  const ask = async () => {
    if (asking) asking.abort();
    asking = new AbortController();
    const query = new URLSearchParams(new FormData(form));
    try {
      const answer = await fetch(`${form.action}?${query}&part=1`, { signal: asking.signal, credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.getElementById(form.dataset.to).replaceChildren(...page.body.childNodes);
      history.replaceState(null, "", `${form.getAttribute("action")}?${query}`);
      prepare();
    } catch { /* a later question is on its way */ }
  };
  for (const slider of form.querySelectorAll("input[type=range]")) {
    const number = document.getElementById(slider.dataset.for);
    const low = Math.log(slider.dataset.low), high = Math.log(slider.dataset.high);
    const follow = () => { slider.value = (1000 * (Math.log(number.value || 1) - low)) / (high - low); };
    slider.hidden = false;
    follow();
    number.addEventListener("input", () => { follow(); if (number.checkValidity()) ask(); });
    slider.addEventListener("input", () => {
      const value = Math.exp(low + ((high - low) * slider.value) / 1000);
      const digits = Math.min(Math.max(Number(value.toPrecision(2)), slider.dataset.low), slider.dataset.high);
      number.value = number.step === "1" ? Math.round(digits) : digits;
      ask();
    });
  }
}

// -- a keyboard: the text goes to the server with each key, and is kept nowhere
const typed = document.getElementById("typed");
if (typed) {
  const phones = [...document.querySelectorAll(".phone")];
  let asked = 0;
  const put = (text) => { typed.value = text.slice(0, typed.maxLength); offer(); };
  const offer = async () => {
    const number = ++asked, text = typed.value;
    const answer = await fetch("/typing/suggest", {
      method: "POST", credentials: "same-origin", headers: { "content-type": "application/json" },
      body: JSON.stringify({ runs: phones.map((phone) => phone.dataset.run), text }),
    });
    const found = await answer.json();
    if (number !== asked) return; // a later key is on its way
    for (const phone of phones) {
      const said = phone.querySelector(".said"), strip = phone.querySelector(".strip");
      if (!found.ok) { said.textContent = found.error; continue; }
      const offered = found.offered[phone.dataset.run];
      const words = /\S$/.test(text) ? text.replace(/\S+$/, "") : text;
      strip.replaceChildren(...offered.strip.map((word) => {
        const key = document.createElement("button");
        key.type = "button";
        key.textContent = word;
        key.addEventListener("click", () => put(`${words}${word} `));
        return key;
      }));
      said.textContent = offered.correction ? `a space would write: ${offered.correction}`
        : offered.phrase ? `and then: ${offered.phrase}` : offered.corrects ? "" : "corrections come in some seconds";
    }
  };
  for (const key of document.querySelectorAll("[data-key]")) {
    key.addEventListener("click", () => {
      put(key.dataset.key === "backspace" ? [...typed.value].slice(0, -1).join("") : typed.value + key.dataset.key);
    });
  }
  typed.addEventListener("input", offer);
  offer();
}
