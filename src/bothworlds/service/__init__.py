"""The decision service: HTTP server, store, writer and trainer threads, client, dashboard and maintenance."""
