// Driver of pg-boss.

import { drive, go, load, Tally, timed } from "../../driver.mjs";

const { PgBoss } = load("pg-boss");

const LOT = 5000;
const worker = { batchSize: 1000, localConcurrency: 2, burstWhenBatchFull: true };

/** Connect; only the installing driver makes tables, and nobody does cron jobs. */
async function connect(task, more = {}) {
  const boss = new PgBoss({
    connectionString: task.address,
    schedule: false,
    supervise: false,
    migrate: false,
    ...more,
  });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  return boss;
}

await drive({
  async install(task) {
    const boss = await connect(task, { migrate: true });
    await boss.createQueue("handle", { notify: true });
    await boss.createQueue("pickup", { notify: true });
  },

  async enqueue_bulk(task) {
    const boss = await connect(task);
    const lots = [...task.lotsOf(LOT, task.payloads())];
    await timed(async () => {
      for (const lot of lots) await boss.insert("handle", lot.map((data) => ({ data })));
    });
  },

  async enqueue_single(task) {
    const boss = await connect(task);
    const payloads = task.payloads();
    await timed(async () => {
      for (const payload of payloads) await boss.send("handle", payload);
    });
  },

  async work(task) {
    const tally = new Tally();
    const boss = await connect(task, { useListenNotify: true, supervise: true });
    await go();
    await boss.work("handle", worker, async (jobs) => {
      for (const job of jobs) tally.handled(job.data.number);
    });
    await boss.work("pickup", worker, async (jobs) => {
      for (const job of jobs) tally.pickedUp(job.data.number);
    });
    await new Promise(() => {});
  },

  async send(task) {
    const boss = await connect(task);
    await go();
    for await (const payload of task.moments()) await boss.send("pickup", payload);
  },
});
