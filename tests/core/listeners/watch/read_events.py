"""Prints what TensorBoard reads in a directory, for tensorboard_test: a line for each value. Ends with 77 and says why
where this Python has no TensorBoard."""

import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2
except ImportError as missing:
    print(f"{sys.executable}: {missing}")
    sys.exit(77)

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
events.Reload()
tags = events.Tags()
for tag in tags["scalars"]:
    for event in events.Scalars(tag):
        print(f"scalar|{tag}|{event.step}|{event.value:.17g}")
for tag in tags["histograms"]:
    for event in events.Histograms(tag):
        value = event.histogram_value
        print(f"histogram|{tag}|{event.step}|{value.num:g}|{sum(value.bucket):g}|{len(value.bucket_limit)}")
for tag in tags["tensors"]:
    for event in events.Tensors(tag):
        if events.SummaryMetadata(tag).plugin_data.plugin_name == "text":
            print(f"text|{tag}|{event.tensor_proto.string_val[0].decode()}")
for tag, content in events.PluginTagToContent("hparams").items():
    data = plugin_data_pb2.HParamsPluginData.FromString(content)
    for name, value in sorted(data.session_start_info.hparams.items()):
        print(f"option|{name}|{getattr(value, value.WhichOneof('kind'))}")
    if data.HasField("session_start_info"):
        print(f"group|{data.session_start_info.group_name}")
    if data.HasField("session_end_info"):
        print(f"status|{data.session_end_info.status}")
    for info in data.experiment.metric_infos:
        print(f"metric|{info.name.tag}")
    for info in data.experiment.hparam_infos:
        print(f"column|{info.name}|{info.type}")
