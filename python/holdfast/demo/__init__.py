"""The main job: a small language model trained on Shakespeare while its ranks are killed, stopped and starved."""
