"""What pybridge keeps between processes, in the user's cache: answers of Julia's, and kernels as files.

Knows bytes and keys, not what they mean. Importing it does no work.
"""

from .store import OFF, SETTING, Store, Usage, default, folder, user_folder

__all__ = ["OFF", "SETTING", "Store", "Usage", "default", "folder", "user_folder"]
