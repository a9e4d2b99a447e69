"""Faults: each file does one thing to a story and says what it did.

A fault is a function from the story to a `Fault`: when it began, when it was over, and whom it
may rightly have silenced. What it does at random it does with the story's own dice.
"""
