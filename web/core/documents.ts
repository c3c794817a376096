/** The documents of version 2 of the protocol (docs/protocol.md, docs/openapi.json), which a device reads. */

import { fromHex } from "./bytes.ts";
import { digits, MOST_COUNT, of, sha256, signed, signedText } from "./log_documents.ts";
import { byKey, integer, listOf, nullOr, object, oneOf, real, text, where, type Read } from "./schema.ts";
import { isSmallAgreementKey, isSmallSigningKey } from "./signing.ts";

export { readShownLog, readTreeHead, type ShownLog, type Signed, type TreeHead } from "./log_documents.ts";

const MOST_TIME = 1e11;
const MOST_REAL = 1e50;

const name = text({ pattern: /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/ });
const evenDigits = (most: number) => text({ pattern: /^([0-9a-f]{2})+$/, most: 2 * most });
const positive = real({ above: 0, most: MOST_REAL });
const contentPath = text({ pattern: /^\/v1\/models\/[0-9a-f]{64}$/ });
const seconds = real({ least: 0, most: 1e9 });
const time = real({ least: 0, most: MOST_TIME });
const goal = integer(1, MOST_COUNT);
const delta = real({ above: 0, below: 1 });

const signedPlan = object({ document: signedText, signature: digits(128), evidence: nullOr(evenDigits(20_000)) });
const smallOrder = "it is a point of small order: anybody could sign or agree with it.";
const signingKey = where(sha256, (key) => (isSmallSigningKey(fromHex(key)) ? smallOrder : null));
const boxKey = where(sha256, (key) => (isSmallAgreementKey(fromHex(key)) ? smallOrder : null));
const keyRotation = object({ old: signingKey, new: signingKey });
const signedKeyRotation = object({ document: signedText, by_old: digits(128), by_new: digits(128) });
const tokenKey = object({
  epoch: integer(0, MOST_COUNT),
  opens: time,
  ends: time,
  batch: integer(1, 100),
  modulus: digits(512),
  exponent: integer(65_537, 4_294_967_295),
});
const blindSignatures = object({
  epoch: integer(0, MOST_COUNT),
  signatures: listOf(digits(512), { least: 1, most: 100 }),
});
const receipt = object({ assignment: digits(32), sha256, received: oneOf(true) });
const problem = object({
  type: text({ pattern: /^tacit:[a-z-]{1,40}$/ }),
  title: text({ most: 200 }),
  status: integer(400, 599),
  detail: text({ most: 2000 }),
});

const comeBack = object({ answer: oneOf("come_back"), after_s: seconds, before_s: seconds });
const assignment = object({ answer: oneOf("assignment"), assignment: digits(32), secret: sha256, signed_task: signed });
const answer = byKey("answer", { come_back: comeBack, assignment });

const matrixFile = object({
  kind: oneOf("banded", "dense"),
  rounds: integer(1, 4_194_304),
  bands: integer(1, 4_194_304),
  sha256,
  bytes: integer(1, 33_562_624),
  path: contentPath,
});
const everyPrivacy = {
  zcdp: nullOr(real({ least: 0, most: MOST_REAL })),
  report_goal: goal,
  rounds: goal,
  max_participations: nullOr(goal),
};
const epsilon = real({ least: 0, most: MOST_REAL });
const trainingPrivacy = object({
  ...everyPrivacy,
  kind: oneOf("training"),
  epsilon: nullOr(epsilon),
  delta,
  clip_norm: positive,
  noise_multiplier: real({ least: 0, most: MOST_REAL }),
  mechanism: text({ least: 1, most: 100 }),
  matrix: nullOr(matrixFile),
});
const histogramPrivacy = object({
  ...everyPrivacy,
  kind: oneOf("histograms"),
  epsilon,
  delta,
  histograms: listOf(goal, { least: 1, most: 100 }),
  noise_multiplier: positive,
});
const sumPrivacy = object({
  ...everyPrivacy,
  kind: oneOf("sums"),
  epsilon,
  delta,
  clip_norm: positive,
  noise_multiplier: positive,
});
const localPrivacy = object({ ...everyPrivacy, kind: oneOf("local"), local_epsilon: positive });
const separation = object({
  rounds: nullOr(goal),
  timer_seconds: nullOr(seconds),
  clock: oneOf("start", "finish"),
});
const keys = listOf(signingKey, { most: 100 });
const aggregation = object({
  kind: oneOf("plain", "encoded", "sealed"),
  threshold: goal,
  keepers: keys,
  boxes: listOf(boxKey, { most: 100 }),
  corrupt: integer(0, 100),
  contributors: keys,
  honest: integer(1, 100),
});
const plan = object({
  version: oneOf(2),
  kind: text({ pattern: /^[a-z][a-z0-9-]{0,39}$/ }),
  population: name,
  run: name,
  recipe: text({ most: 262_144 }),
  code: sha256,
  privacy: byKey("kind", {
    training: trainingPrivacy,
    local: localPrivacy,
    histograms: histogramPrivacy,
    sums: sumPrivacy,
  }),
  separation,
  aggregation,
  vocabulary: sha256,
  attestation: object({ devices: name, server: name }),
  enrolment: oneOf("none", "tokens"),
});

const client = object({
  epochs: integer(1, 100_000),
  batch_size: integer(1, 100_000),
  learning_rate: positive,
  sentences: integer(1, 100_000),
  words: integer(1, 100_000),
  proximal: real({ least: 0, most: MOST_REAL }),
  precision: oneOf("float32", "bfloat16"),
});
const encodedSum = object({
  parameters: goal,
  dimension: integer(1, 2_000_000_000),
  clip_norm: positive,
  scale: positive,
  report_goal: goal,
  sigmas: positive,
  margin: integer(0, 4_294_967_296),
  margin_each: integer(0, 4_294_967_296),
  signs: sha256,
  length: integer(1, 2_000_000_100),
  threshold: goal,
});
const train = object({
  kind: oneOf("train"),
  parameters: goal,
  client,
  clip_norm: positive,
  clip_estimate: nullOr(positive),
  loss_bound: nullOr(positive),
  encoded: nullOr(encodedSum),
});
const consistentTrain = where(train, ({ parameters: count, encoded }) =>
  encoded === null || encoded.parameters === count ? null : "its encoding is of other parameters than its model.",
);
const words = listOf(text({ most: 1000 }), { most: 100_000 });
const discover = object({
  kind: oneOf("discover"),
  question: byKey("about", {
    prefixes: object({
      about: oneOf("prefixes"),
      prefixes: listOf(text({ most: 1000 }), { least: 1, most: 100_000 }),
      alphabet: text({ least: 1, most: 100_000 }),
      depth: integer(2, 1000),
      found: words,
    }),
    words: object({ about: oneOf("words"), words }),
  }),
  reports: object({
    local_epsilon: real({ above: 0, most: 700 }),
    contributions: integer(1, 100_000),
    sampler: oneOf("random", "greedy"),
    randomizer: text({ least: 1, most: 100 }),
  }),
});
const cells = {
  cells: listOf(integer(2, 10_000_000), { least: 1, most: 10_000 }),
  local_epsilon: nullOr(positive),
};
const parameters = listOf(goal, { least: 1, most: 100 });
const evaluate = object({ ...cells, kind: oneOf("evaluate"), parameters });
const rule = object({ strategy: integer(0, 9_999), level: real({ above: 0, most: 1 }) });
const personalize = object({
  ...cells,
  kind: oneOf("personalize"),
  parameters,
  policies: nullOr(
    listOf(
      object({
        name: text({ least: 1, most: 200 }),
        cuts: listOf(positive, { most: 1000 }),
        rules: listOf(nullOr(rule), { least: 1, most: 1001 }),
      }),
      { most: 100 },
    ),
  ),
});
const count = object({ ...cells, kind: oneOf("count"), norms: nullOr(listOf(positive, { most: 10_000 })) });
const task = object({
  run: name,
  plan: sha256,
  round: integer(0, MOST_COUNT),
  attempt: integer(0, 1_000_000),
  task: digits(32),
  content: object({ sha256, bytes: integer(1, 8_000_000_000), path: contentPath }),
  asks: byKey("kind", { train: consistentTrain, discover, evaluate, personalize, count }),
  sealed: nullOr(evenDigits(20_000)),
  opens: time,
  deadline: time,
});
const consistentTask = where(task, ({ asks, sealed, opens, deadline }) => {
  if (opens >= deadline) return "its deadline is not after it opens.";
  return asks.kind === "train" && asks.encoded === null && sealed !== null ? "it seals what is not encoded." : null;
});

export type SignedPlan = Read<typeof signedPlan>;
export type KeyRotation = Read<typeof keyRotation>;
export type SignedKeyRotation = Read<typeof signedKeyRotation>;
export type TokenKey = Read<typeof tokenKey>;
export type BlindSignatures = Read<typeof blindSignatures>;
export type Receipt = Read<typeof receipt>;
export type Problem = Read<typeof problem>;
export type ComeBack = Read<typeof comeBack>;
export type Assignment = Read<typeof assignment>;
export type Answer = Read<typeof answer>;
export type MatrixFile = Read<typeof matrixFile>;
export type TrainingPrivacy = Read<typeof trainingPrivacy>;
export type HistogramPrivacy = Read<typeof histogramPrivacy>;
export type SumPrivacy = Read<typeof sumPrivacy>;
export type LocalPrivacy = Read<typeof localPrivacy>;
export type Separation = Read<typeof separation>;
export type Aggregation = Read<typeof aggregation>;
export type Plan = Read<typeof plan>;
export type Train = Read<typeof train>;
export type EncodedSum = Read<typeof encodedSum>;
export type Discover = Read<typeof discover>;
export type Evaluate = Read<typeof evaluate>;
export type Personalize = Read<typeof personalize>;
export type Count = Read<typeof count>;
export type RoundTask = Read<typeof task>;

export const readAnswer = of(answer);
export const readSigned = of(signed);
export const readSignedPlan = of(signedPlan);
export const readPlan = of(plan);
export const readTask = of(consistentTask);
export const readReceipt = of(receipt);
export const readTokenKey = of(tokenKey);
export const readBlindSignatures = of(blindSignatures);
export const readKeyRotation = of(keyRotation);
export const readSignedKeyRotation = of(signedKeyRotation);
export const readProblem = of(problem);
export const readSeparation = of(separation);

/** The check-in of a device: `versions` says for each kind of task the latest version that it can do. */
export function checkIn(population: string, versions: Readonly<Record<string, number>>, token: string | null): string {
  return JSON.stringify({ version: 2, population, versions, token });
}

/** The request for an epoch's tokens, of a device that nothing attests. */
export function tokenRequest(code: string, epoch: number, blinded: readonly string[]): string {
  return JSON.stringify({ code, epoch, blinded, evidence: null });
}
