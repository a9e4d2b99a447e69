"""Metrics: the queue in the formats of monitoring systems.

prometheus.py  the text that Prometheus scrapes
otel.py        spans for OpenTelemetry, joined across processes (the extra `otel`)
"""
