"""Stands in for umqtt.simple 1.8.0: its constructor and attributes, and nothing that sends.

A Link replaces all that talks to the network, so this is all of umqtt it may depend on.
"""


class MQTTException(Exception):
    """The broker has refused."""


class MQTTClient:
    """Arguments and attributes of 1.8.0, where `ssl` is a context or None."""

    def __init__(self, client_id, server, port=0, user=None, password=None, keepalive=0, ssl=None):
        self.client_id = client_id
        self.sock = None
        self.server = server
        self.port = port or (8883 if ssl else 1883)
        self.ssl = ssl
        self.pid = 0
        self.cb = None
        self.user = user
        self.pswd = password
        self.keepalive = keepalive
        self.lw_topic = self.lw_msg = None
        self.lw_qos = 0
        self.lw_retain = False

    def set_callback(self, f):
        """`f(topic, msg)` gets what is received."""
        self.cb = f

    def set_last_will(self, topic, msg, retain=False, qos=0):
        """What the broker publishes when the connection is lost."""
        self.lw_topic, self.lw_msg, self.lw_qos, self.lw_retain = topic, msg, qos, retain

    def connect(self, clean_session=True, timeout=None):
        """Not to be reached: Link has its own."""
        raise NotImplementedError
