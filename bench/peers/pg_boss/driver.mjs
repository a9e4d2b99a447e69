// Driver of pg-boss.

import { CallCounter, drive, load, produce, sleep, timed, waitForStart } from "../../driver.mjs";

const { PgBoss } = load("pg-boss");

const worker = (options) => ({
  batchSize: options.batch_size,
  localConcurrency: options.local_concurrency,
  burstWhenBatchFull: true,
});

/** Return how often jobs of silent workers are looked for; without the option as often as by default. */
const supervised = ({ supervise_every: seconds }) => ({
  supervise: true,
  ...(seconds && { superviseIntervalSeconds: seconds, monitorIntervalSeconds: seconds }),
});

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
    const batches = [...task.batchesOf(task.options.enqueue_batch, task.payloads())];
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
    const boss = await connect(task, { useListenNotify: true, ...supervised(task.options) });
    if (task.options.silent_after) {
      await boss.updateQueue("pickup", { heartbeatSeconds: task.options.silent_after });
    }
    await waitForStart();
    await boss.work("handle", worker(task.options), async (jobs) => {
      for (const job of jobs) calls.handled(job.data.number);
      if (task.sleepMs) await Promise.all(jobs.map(() => sleep(task.sleepMs)));
    });
    await boss.work("pickup", worker(task.options), async (jobs) => {
      for (const job of jobs) calls.pickedUp(job.data.number);
    });
    await new Promise(() => {});
  },

  async send(task) {
    const boss = await connect(task);
    await waitForStart();
    for await (const payload of task.timestampedPayloads()) await boss.send("pickup", payload);
  },

  async produce(task) {
    const boss = await connect(task, { max: task.options.producer_connections });
    await produce(
      task,
      (payload) => boss.send("pickup", payload),
      (payloads) => boss.insert("pickup", payloads.map((data) => ({ data }))),
    );
  },
});
