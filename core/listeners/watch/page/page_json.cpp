#include "muster/core/listeners/watch/page/page_json.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "muster/core/base/printable_text.h"
#include "muster/core/base/utf8.h"

namespace muster::page_json {
namespace {

void appendHistogram(std::string& json, const char* name, const Histogram& histogram) {
  fmt::format_to(std::back_inserter(json), "\"{}\":{{\"min\":", name);
  append(json, histogram.min);
  json += ",\"max\":";
  append(json, histogram.max);
  json += ",\"norm\":";
  append(json, histogram.norm());
  fmt::format_to(std::back_inserter(json), ",\"count\":{},\"nonFinite\":{},\"bins\":[{}]}}", histogram.count,
                 histogram.nonFinite, fmt::join(histogram.bins, ","));
}

}  // namespace

void append(std::string& json, std::string_view given) {
  const std::string text = isUtf8(given) ? std::string(given) : printableText(given);
  json += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (json += '\\') += c;
    else if (byte < 0x20 || byte == 0x7f || c == '<')
      fmt::format_to(std::back_inserter(json), "\\u{:04x}", byte);
    else
      json += c;
  }
  json += '"';
}

void append(std::string& json, double value) {
  if (std::isfinite(value))
    fmt::format_to(std::back_inserter(json), "{}", value);
  else
    json += "null";
}

void append(std::string& json, const PageProgress& p) {
  const auto began = std::chrono::duration<double>(p.began.time_since_epoch()).count();
  fmt::format_to(
      std::back_inserter(json),
      "{{\"running\":{},\"workers\":{},\"epoch\":{},\"lastEpoch\":{},\"iteration\":{},\"batches\":{},"
      "\"batchesPerEpoch\":{},\"began\":{}}}",
      p.running, p.workers, p.epoch, p.lastEpoch, p.iteration, p.batches,
      p.batchesPerEpoch ? fmt::format("{}", *p.batchesPerEpoch) : "null", began);
}

void append(std::string& json, const PageHistograms& histograms) {
  fmt::format_to(std::back_inserter(json), "{{\"step\":{},\"layers\":[", histograms.step);
  const char* separator = "";
  for (const auto& layer : histograms.layers) {
    (json += separator) += "{\"name\":";
    append(json, layer.name);
    json += ',';
    appendHistogram(json, "parameters", layer.parameters);
    json += ',';
    appendHistogram(json, "update", layer.update);
    json += ",\"ratio\":";
    append(json, layer.ratio());
    json += '}';
    separator = ",";
  }
  json += "]}";
}

void appendJson(std::string& json, std::string_view document) {
  for (const char c : document) {
    if (c == '<')
      json += "\\u003c";  // in JSON, '<' occurs only inside strings, where this escape is valid
    else
      json += c == '\n' || c == '\r' ? ' ' : c;
  }
}

}  // namespace muster::page_json
