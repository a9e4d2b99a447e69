"""Tests of the dashboard: the app over HTTP, and its pages in a real browser."""
