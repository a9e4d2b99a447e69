"""Schedules: jobs at given times."""
