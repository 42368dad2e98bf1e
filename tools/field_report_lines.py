"""The public reports that a test here answers, and what broke in each: the one table of them.

A report is named as a test names it: `project#number`, or `project/word` for what stands in a
project's code rather than in a report. PROJECTS has the names of those that are named in short.
"""

PROJECTS = {
    "mp": "micropython",
    "lib": "micropython-lib",
    "mq": "micropython-mqtt",
    "robust2": "micropython-umqtt.robust2",
    "PahoJava": "paho.mqtt.java",
}

# (heading, rows); a row is (reports of one kind, what broke there).
GROUPS = (
    (
        "Protocol",
        (
            (("lib#94",), "it hung for ever after 65,535 messages: the packet id went on to 0"),
            (("lib#103",), "publish never returned, because one acknowledgement was lost"),
            (("lib#890",), "the time-out was gone after the first packet that came in"),
            (
                ("mq/repeated-ack",),
                "an acknowledgement that came late, and so twice, took the link down",
            ),
            (
                ("EMS-ESP32#305",),
                "the queue stood for 5 hours: a message went again under a new packet id "
                "while the old one was awaited",
            ),
            (
                ("mq/session-present",),
                "a broker that had kept the session could never be connected to again",
            ),
            (("espMqttClient#59",), "what was queued went when the broker forgot the session"),
            (
                ("robust2#2",),
                "a connection that ended in the middle of a packet raised an error "
                "that nobody expected, and nobody connected again",
            ),
            (
                ("mq#66", "lib#746", "lib#1073"),
                "lengths were counted in characters: one ° and all that followed was lost",
            ),
            (("mongoose#1827",), "an empty message was refused"),
            (
                ("MiniMQTT#82", "MiniMQTT#107"),
                "a large message from outside ended in a lack of memory or a dead link",
            ),
            (("NanoMQ#2432",), "stored messages were deleted before they had been sent"),
        ),
    ),
    (
        "Connection",
        (
            (
                ("project_aura#125",),
                "for 43 hours it was connected to a broker that was no longer there",
            ),
            (("lib#210",), "the broker threw out a client that was idle: nobody sent a ping"),
            (("OpenEVSE#1102",), "it was connecting for ever: the answer had no deadline"),
            (
                ("esp-rainmaker-neo#1",),
                "two devices with one name threw each other out as fast as they could",
            ),
            (
                ("mp#6455", "mp#5929"),
                "after many connections that failed there was no memory for a good one",
            ),
            (("mp#18797", "mp#4801"), "a name server that did not answer stopped everything"),
            (("mp#10832",), "a good certificate was refused: the clock was not set yet"),
            (("mp#4290",), "the end of a connection was not told to whoever waited to read"),
            (
                ("mq#132", "mq#154", "mp#17661"),
                "Wi-Fi stayed down: an access point that was off looked like a wrong password, "
                "a second attempt was an internal error, a soft reset left an old state behind",
            ),
        ),
    ),
    (
        "Queue, memory and storage",
        (
            (("mq/MsgQueue",), "a queue of 1 lost messages, and a queue of 4 held 3"),
            (
                ("esp-idf#5668", "esp-idf#14419"),
                "the memory was used up after 7 hours without a broker",
            ),
            (("mp#3840", "mp#2057"), "it died of a heap in pieces"),
            (("Telegraf#17240",), "the first record after everything had been sent was lost"),
            (("thingsboard-gateway#2124",), "each new connection emptied the storage"),
            (
                ("PahoJava#224", "PahoJava#594"),
                "messages pushed out of a full buffer came back, or stayed in the storage",
            ),
        ),
    ),
    (
        "Time and watchdog",
        (
            (
                ("mp#9516", "mp#9608", "coreMQTT#288"),
                "times compared wrongly when the counter of milliseconds began again, "
                "after 12.4 days",
            ),
            (
                ("lib#786", "lib#604", "mp#7137"),
                "the time was 30 years off, counted from 1970 or 2000; "
                "a time server that failed set the clock all the same",
            ),
            (
                ("homie-esp8266#620",),
                "what was measured before the clock was set kept a time that meant nothing",
            ),
            (("esp-mqtt#143",), "the watchdog reset the board while it was connecting"),
            (
                ("openamber#145", "mp#5199"),
                "without a broker the board was reset, and what waited was gone",
            ),
            (
                ("pubsubclient#452", "pubsubclient#690"),
                "a message sent right before going to sleep never left",
            ),
        ),
    ),
)
