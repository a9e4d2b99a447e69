// Driver of pg-boss: the policies of a queue with a singletonKey, and groupConcurrency.

import { drive, keyedPayloads, KeyedHandler, load, timed, waitForStart } from "../../driver.mjs";

const { PgBoss } = load("pg-boss");

// A worker that takes one job at a time goes on without a pause only if it knows that more wait.
const STATS = {
  supervise: true,
  superviseIntervalSeconds: 1,
  monitorIntervalSeconds: 1,
  queueCacheIntervalSeconds: 1,
};

/** Return what a job needs: all jobs of a limit are one group. */
const keyOf = (task, payload) =>
  task.options.kind === "limit" ? { group: { id: "all" } } : { singletonKey: payload.key };

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
    const policy = { keys: task.options.policy, ordered: "key_strict_fifo" }[task.options.kind];
    await boss.createQueue("handle", { notify: true, ...(policy && { policy }) });
  },

  async enqueue_bulk(task) {
    const boss = await connect(task);
    const jobs = keyedPayloads(task).map((data) => ({ data, ...keyOf(task, data) }));
    await timed(async () => {
      for (const batch of task.batchesOf(task.options.enqueue_batch, jobs)) {
        await boss.insert("handle", batch);
      }
    });
  },

  async enqueue_single(task) {
    const boss = await connect(task);
    const payloads = keyedPayloads(task);
    await timed(async () => {
      for (const payload of payloads) await boss.send("handle", payload, keyOf(task, payload));
    });
  },

  async work(task) {
    const handler = new KeyedHandler(task);
    const boss = await connect(task, { useListenNotify: true, ...STATS });
    await waitForStart();
    const options = {
      batchSize: task.options.batch_size,
      localConcurrency: task.options.local_concurrency,
      ...(task.options.batch_size > 1
        ? { burstWhenBatchFull: true }
        : { burstWhenReadyExceeds: 1 }),
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
      ...(task.options.kind === "limit" && { groupConcurrency: task.options.slots }),
    };
    await boss.work("handle", options, (jobs) =>
      Promise.all(jobs.map((job) => handler.handle(job.data.number))),
    );
    await new Promise(() => {});
  },
});
