"""Training on many devices: processes on one machine, MPI across machines."""
