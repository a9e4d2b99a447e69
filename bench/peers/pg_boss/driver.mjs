// Driver of pg-boss.

import { CallCounter, drive, load, timed, waitForStart } from "../../driver.mjs";

const { PgBoss } = load("pg-boss");

const ENQUEUE_BATCH = 5000;
const worker = { batchSize: 1000, localConcurrency: 2, burstWhenBatchFull: true };

/** Connect. Only `install` creates tables, and there are no cron jobs. */
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
    const batches = [...task.batchesOf(ENQUEUE_BATCH, task.payloads())];
    await timed(async () => {
      for (const batch of batches) await boss.insert("handle", batch.map((data) => ({ data })));
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
    const calls = new CallCounter();
    const boss = await connect(task, { useListenNotify: true, supervise: true });
    await waitForStart();
    await boss.work("handle", worker, async (jobs) => {
      for (const job of jobs) calls.handled(job.data.number);
    });
    await boss.work("pickup", worker, async (jobs) => {
      for (const job of jobs) calls.pickedUp(job.data.number);
    });
    await new Promise(() => {});
  },

  async send(task) {
    const boss = await connect(task);
    await waitForStart();
    for await (const payload of task.timestampedPayloads()) await boss.send("pickup", payload);
  },
});
