"""What travels on topics: frozen msgspec structs, checked once at the door.

``incoming`` is what platforms send, ``feed_log`` what the question stage tells the feed stage, ``outputs`` what
subscribers read, ``rejections`` why an event was refused, ``feed_settings`` the settings that travel as data,
``topics`` the names, ``times`` and ``partitioning`` what all of them share.
"""
