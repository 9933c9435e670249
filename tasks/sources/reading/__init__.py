"""Shared readers of the sources: files, exports, HTTP servers, time windows, rows and rejects."""
