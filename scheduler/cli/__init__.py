"""The command line: one file per noun. Commands import what they need when they run, so that `--help` stays quick.

Data goes to stdout, messages to stderr. Exit codes: 0 ok, 1 job failed, 2 usage, 3 configuration invalid, 4 not found,
5 another replica has it, 6 cancelled, 7 timed out, 8 database unreachable; 130 interrupted, 70 a fault of our own.
"""
