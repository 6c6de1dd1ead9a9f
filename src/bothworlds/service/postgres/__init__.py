"""The store in a PostgreSQL database, which several hosts share: records, the right to learn, and current plans."""
