"""The Python face of Holdfast: functions become tasks and steps, calls become handles."""
