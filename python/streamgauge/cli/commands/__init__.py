"""What each command is asked: its arguments, its options, its help. Quick to import, as every start of the
program needs all of them; what a command does is imported when it runs."""
