"""howdah: a PostgreSQL job queue for Python."""
