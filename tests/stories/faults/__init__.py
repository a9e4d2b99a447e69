"""Faults: each module injects one kind of fault into a story.

A fault is a function from the story to a `Fault`: when it began, when it was over, and which
processes it may have silenced. Random choices come from the story's own random numbers.
"""
