"""Sensors: what the application reads on a period. One file a sensor.

A sensor is any object with

    name       text, for the status and the log
    period_ms  milliseconds from one read to the next
    tags       a tuple of (tag id, name, kind, unit, scale), constant, told to the broker once
    priority   optional: LOW, NORMAL (the default), HIGH of `millpond.message`, for its readings
    read(out)  look at all tags once and hand over what was seen

A tag id (1 to 65,535) is unique on the board. The kind is a name of `millpond.reading.KIND_NAMES`.
The scale is what an integer is multiplied by to be in `unit`; of a float32 it is the resolution.

`read` must not wait: it runs between two turns of the event loop. It calls

    out.reading(tag_id, value, status=0)   a number, or a sequence of them; with a status (1 to
                                           255, an error code of the sensor's) the value is not sent
    out.alert(name, text)                  something a person must know now, at CRITICAL; a third
                                           argument is another priority

all of which share one moment. What `read` raises, its task reports; it is called again later.
"""
