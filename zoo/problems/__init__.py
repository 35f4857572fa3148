"""A file a package: functions that make a loss and its arguments."""
