"""Observe: questions about a queue, each answered at a bounded cost, and how to steer it."""
