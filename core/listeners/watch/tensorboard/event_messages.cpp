#include "muster/core/listeners/watch/tensorboard/event_messages.h"

#include <algorithm>
#include <chrono>

#include "event.pb.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/base/utf8.h"

namespace muster::events {
namespace {

constexpr int kString = 7;  // TensorFlow's DT_STRING
constexpr int kFloat = 1;   // DT_FLOAT
enum ColumnType { kText = 1, kTruth = 2, kNumber = 3 };

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

wire::Event eventAt(std::int64_t step) {
  wire::Event event;
  event.set_wall_time(now());
  event.set_step(step);
  return event;
}

/// A value of the event's summary. @param tag  protobuf refuses text that is not UTF-8.
wire::Summary::Value& valueOf(wire::Event& event, std::string_view tag) {
  auto& value = *event.mutable_summary()->add_value();
  value.set_tag(printableText(tag));
  return value;
}

std::string bytesOf(const wire::Event& event) {
  return event.SerializeAsString();
}

std::string pluginData(std::string_view tag, const wire::HyperParameters& content) {
  wire::Event event = eventAt(0);
  auto& value = valueOf(event, tag);
  auto& plugin = *value.mutable_metadata()->mutable_plugin_data();
  plugin.set_plugin_name("hparams");
  plugin.set_content(content.SerializeAsString());
  // The plugin reads only the metadata, but a value is required: an empty float tensor.
  value.mutable_tensor()->set_dtype(kFloat);
  value.mutable_tensor()->mutable_shape()->add_dimension();
  return bytesOf(event);
}

}  // namespace

std::string version() {
  wire::Event event;
  event.set_wall_time(now());
  event.set_file_version("brain.Event:2");
  return bytesOf(event);
}

std::string restart(std::int64_t step) {
  wire::Event event = eventAt(step);
  event.mutable_session_log()->set_status(1);
  return bytesOf(event);
}

std::string scalar(std::string_view tag, std::int64_t step, double value) {
  wire::Event event = eventAt(step);
  valueOf(event, tag).set_simple_value(static_cast<float>(value));
  return bytesOf(event);
}

std::string histogram(std::string_view tag, std::int64_t step, const Histogram& histogram) {
  wire::Event event = eventAt(step);
  auto& written = *valueOf(event, tag).mutable_histogram();
  written.set_min(histogram.min);
  written.set_max(histogram.max);
  written.set_count(static_cast<double>(histogram.count));
  written.set_sum(histogram.sum);
  written.set_sum_squares(histogram.sumOfSquares);
  for (int bin = 0; bin < Histogram::kBins; ++bin) {
    written.add_upper_edge(histogram.edge(bin + 1));
    written.add_bin(static_cast<double>(histogram.bins[static_cast<std::size_t>(bin)]));
  }
  return bytesOf(event);
}

std::string text(std::string_view tag, std::string_view markdown) {
  wire::Event event = eventAt(0);
  auto& value = valueOf(event, tag);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value.mutable_tensor()->set_dtype(kString);
  value.mutable_tensor()->mutable_shape();  // no dimensions: a single string
  value.mutable_tensor()->add_string_value(isUtf8(markdown) ? std::string(markdown)
                                                            : printableText(markdown));
  return bytesOf(event);
}

std::string experiment(const std::vector<HyperParameter>& parameters,
                       const std::vector<std::string>& metrics) {
  wire::HyperParameters content;
  auto& experiment = *content.mutable_experiment();
  for (const auto& parameter : parameters) {
    auto& column = *experiment.add_parameter();
    column.set_name(printableText(parameter.name));
    column.set_type(std::holds_alternative<double>(parameter.value) ? kNumber
                    : std::holds_alternative<bool>(parameter.value) ? kTruth
                                                                    : kText);
  }
  for (const auto& metric : metrics) experiment.add_metric()->mutable_name()->set_tag(printableText(metric));
  return pluginData("_hparams_/experiment", content);
}

std::string runStart(const std::vector<HyperParameter>& parameters, std::string_view group) {
  wire::HyperParameters content;
  auto& start = *content.mutable_run_start();
  start.set_group(printableText(group));
  start.set_start(now());
  for (const auto& parameter : parameters) {
    auto& value = (*start.mutable_parameters())[printableText(parameter.name)];
    if (const auto* number = std::get_if<double>(&parameter.value))
      value.set_number(*number);
    else if (const auto* truth = std::get_if<bool>(&parameter.value))
      value.set_truth(*truth);
    else
      value.set_text(printableText(std::get<std::string>(parameter.value)));
  }
  return pluginData("_hparams_/session_start_info", content);
}

std::string runEnd(bool finished) {
  wire::HyperParameters content;
  content.mutable_run_end()->set_status(finished ? 1 : 0);
  content.mutable_run_end()->set_end(now());
  return pluginData("_hparams_/session_end_info", content);
}

}  // namespace muster::events
