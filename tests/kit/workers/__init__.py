"""Work for executors whose workers are other processes, which import it from here."""
