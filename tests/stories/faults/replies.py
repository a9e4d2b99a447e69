"""Replies: a statement is executed and committed, and its answer is lost."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.stories.history import Fault
from tests.stories.story import Story
from tests.support.waiting import wait_until

TIMES = 3


def _lose_answers(name: str, pattern: str) -> Callable[[Story], Fault]:
    def lose(story: Story) -> Fault:
        began = time.monotonic()
        for _ in range(TIMES):
            story.proxy.drop_answer(pattern)
            wait_until(lambda: not story.proxy.dropping, f"a client sends {pattern}", deadline=30)
        return Fault(name, began, time.monotonic())

    return lose


lose_enqueue_answers = _lose_answers("answer to an enqueue lost", r"howdah\.enqueue")
lose_commit_answers = _lose_answers("answer to a COMMIT lost", r"(?i)^commit")
lose_claim_answers = _lose_answers("answer to a claim lost", r"howdah\.claim\b")
lose_complete_answers = _lose_answers("answer to a complete lost", r"howdah\.complete")
lose_retry_answers = _lose_answers("answer to a retry lost", r"howdah\.retry")
