/** Plans and tasks as texts, for tests: whole documents, of which a test changes a few keys. */

type Said = Readonly<Record<string, unknown>>;

export const RECIPE = `
name = "es"
[rounds]
rounds = 12
report_goal = 3
min_separation = 4
max_participations = 3
[privacy]
clip_norm = 1.0
noise_multiplier = 7.0
[privacy.mechanism]
name = "banded-toeplitz"
coefficients = [1.0, 0.5, 0.375, 0.25, 0.125, 0.1]
`;

export const TRAINING = {
  kind: "training",
  zcdp: 0.2,
  report_goal: 3,
  rounds: 12,
  max_participations: 3,
  epsilon: 5.0,
  delta: 1e-5,
  clip_norm: 1.0,
  noise_multiplier: 7.0,
  mechanism: "banded-toeplitz",
  matrix: null,
};

export const PLAIN = { kind: "plain", threshold: 2, keepers: [], boxes: [], corrupt: 0, contributors: [], honest: 1 };

export function planSaid(changed: Said): string {
  return JSON.stringify({
    version: 2,
    kind: "train",
    population: "default",
    run: "es",
    recipe: RECIPE,
    code: "00".repeat(32),
    privacy: TRAINING,
    separation: { rounds: 4, timer_seconds: null, clock: "start" },
    aggregation: PLAIN,
    vocabulary: "11".repeat(32),
    attestation: { devices: "none", server: "none" },
    enrolment: "none",
    ...changed,
  });
}

export const TRAIN = {
  kind: "train",
  parameters: 3,
  client: {
    epochs: 1,
    batch_size: 8,
    learning_rate: 1.0,
    sentences: 32,
    words: 20,
    proximal: 0.0,
    precision: "float32",
  },
  clip_norm: 1.0,
  clip_estimate: null,
  loss_bound: null,
  encoded: null,
};

export function taskSaid(changed: Said): string {
  return JSON.stringify({
    run: "es",
    plan: "22".repeat(32),
    round: 0,
    attempt: 0,
    task: "33".repeat(16),
    content: { sha256: "44".repeat(32), bytes: 100, path: "/v1/models/" + "44".repeat(32) },
    asks: TRAIN,
    sealed: null,
    opens: 1_800_000_000,
    deadline: 1_800_000_600,
    ...changed,
  });
}
