// Driver: what the drivers of the Node peers have in common. The protocol is that of driver.py,
// the files are those of tally.py.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { openSync, writeSync } from "node:fs";
import { join } from "node:path";

const PAYLOAD_BYTES = 100;
const SLOTS = 512;
const CELLS = 3;
const TICK = 5; // milliseconds between writes of the tally: Node has no shared memory

/** Load a package of the peer's own environment. */
export const load = createRequire(join(process.env.BENCH_HOME, "package.json"));

export const say = (words) => writeSync(1, JSON.stringify(words) + "\n");

export const payload = (number) => ({
  number,
  rest: "x".repeat(PAYLOAD_BYTES - 21 - String(number).length),
});

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Say that all is ready, and wait for the word. */
export async function go() {
  say({ ready: true });
  const { done } = await lines.next();
  if (done) process.exit(1);
}

/** Wait for the word, and say how long the function took. */
export async function timed(work) {
  await go();
  const began = process.hrtime.bigint();
  await work();
  say({ seconds: Number(process.hrtime.bigint() - began) / 1e9 });
}

export class Task {
  constructor({ address = "", jobs = 0, options = {} }) {
    Object.assign(this, { address, jobs, options });
  }

  payloads() {
    return Array.from({ length: this.jobs }, (_, number) => payload(number));
  }

  *lotsOf(size, payloads) {
    for (let start = 0; start < payloads.length; start += size) {
      yield payloads.slice(start, start + size);
    }
  }

  /** Yield a payload that carries the present time whenever the word comes. */
  async *moments() {
    for (let sent = 0; sent < this.jobs; sent++) {
      const { done } = await lines.next();
      if (done) process.exit(1);
      // A string, because a number of JavaScript cannot hold it.
      yield { ...payload(0), number: String(process.hrtime.bigint()) };
    }
  }
}

/** Count the calls of the handlers of this process. */
export class Tally {
  #cells = new BigInt64Array(SLOTS * CELLS);
  #calls = 0;
  #sum = 0;
  #pickups = 0;

  constructor() {
    const path = (kind) => join(process.env.BENCH_TALLY, `${process.pid}.${kind}`);
    const file = openSync(path("tally"), "w");
    writeSync(file, this.#cells);
    this.#pickups = openSync(path("pickup"), "w");
    let written = 0;
    setInterval(() => {
      if (this.#calls === written) return;
      written = this.#calls;
      this.#cells[0] = BigInt(this.#calls);
      this.#cells[1] = BigInt(this.#sum);
      writeSync(file, this.#cells.subarray(0, CELLS), 0, CELLS * 8, 0);
    }, TICK);
  }

  handled(number) {
    if (this.#calls === 0) this.#cells[2] = process.hrtime.bigint();
    this.#calls += 1;
    this.#sum += number;
  }

  pickedUp(sent) {
    const now = process.hrtime.bigint();
    writeSync(this.#pickups, BigInt64Array.of(BigInt(sent), now));
  }
}

/** Do what the command line asks for, with one of these functions. */
export async function drive(verbs) {
  const [verb, text] = process.argv.slice(2);
  const all = { versions: async () => say({ versions: { node: process.versions.node } }), ...verbs };
  await all[verb](new Task(JSON.parse(text)));
  say({ done: true });
  process.exit(0);
}
