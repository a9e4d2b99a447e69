"""Exactly once: a handler's writes and its completion are one transaction.

Run it: python examples/exactly_once.py

The first attempt writes and then fails, so its write is rolled back. The second one is committed
together with the completion of the job.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg

from howdah import JobContext, Queue
from howdah.embedded import join


async def main() -> None:
    with join() as server:  # in your program: the DSN of your database
        queue = Queue(server.dsn)

        @queue.job(backoff=timedelta(milliseconds=10))
        async def pay_out(ctx: JobContext, account: str, amount: int) -> None:
            async with ctx.transaction() as conn:
                await conn.execute("insert into payments values ($1, $2)", account, amount)
                if ctx.attempt == 1:
                    raise RuntimeError("the network broke")
                await ctx.complete_in(conn, {"paid": amount})  # only to give a result

        await queue.install()
        connection = await asyncpg.connect(server.dsn)
        await connection.execute("create table if not exists payments (account text, amount int)")
        async with queue, queue.worker():
            handle = await pay_out.enqueue(account="a-7", amount=100)
            print("result:", await handle.result(timeout=30))
            print("attempts:", (await handle.job()).attempts)
        print("paid:", await connection.fetchval("select sum(amount) from payments"))
        await connection.execute("drop table payments")
        await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
