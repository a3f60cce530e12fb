"""Random job files, run by fio and by Spindle under the kernel's tracepoints, compared request by request."""
