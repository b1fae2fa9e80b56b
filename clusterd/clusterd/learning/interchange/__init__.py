"""Rules to and from files: clusterd's own, and duplicate-url-discarder's JSON; a reason for what that cannot say."""
