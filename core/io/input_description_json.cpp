#include <algorithm>
#include <type_traits>

#include "muster/core/base/error.h"
#include "muster/core/data/input_description.h"
#include "muster/core/io/json_fields.h"

namespace muster {
namespace {

template <typename Visitor>
constexpr bool kReads = std::is_same_v<Visitor, JsonReader>;

void words(JsonReader& reader, std::string_view name, std::vector<std::string>& value) {
  reader.strings(name, value);
}
void words(JsonWriter& writer, std::string_view name, std::vector<std::string>& value) {
  writer.put(name, std::span<const std::string>(value));
}

template <typename T, typename Each>
void listOf(JsonReader& reader, std::string_view name, std::vector<T>& list, const Each& each) {
  reader.list(name, [&](JsonReader& in) { each(in, list.emplace_back()); });
}
template <typename T, typename Each>
void listOf(JsonWriter& writer, std::string_view name, std::vector<T>& list, const Each& each) {
  if (list.empty()) return;
  writer.list(name, list.size(), [&](std::size_t i, JsonWriter& in) { each(in, list[i]); });
}

/// A field that files leave out where it has its default.
template <typename Visitor, typename T>
void unusual(Visitor& v, std::string_view name, T& value, const T& usual) {
  if (kReads<Visitor> || value != usual) v.field(name, value);
}

template <typename Visitor>
void visitText(Visitor& v, NumberText& text) {
  unusual(v, "before", text.before, std::string());
  unusual(v, "after", text.after, std::string());
  unusual(v, "thousands", text.thousands, false);
}

template <typename Visitor>
void visitColumn(Visitor& v, ColumnDescription& c) {
  v.field("name", c.name);
  v.field("kind", c.kind);
  if (c.kind == ColumnKind::Words) {
    words(v, "words", c.words);
    unusual(v, "others", c.others, false);
  } else {
    v.field("filling", c.filling);
  }
  if (c.kind == ColumnKind::Number) {
    unusual(v, "wordsAreMissing", c.wordsAreMissing, false);
    unusual(v, "logScale", c.logScale, 0.0);
    if (kReads<Visitor> || !c.quantiles.empty()) v.numbers("quantiles", c.quantiles);
    visitText(v, c.text);
  }
  if (c.kind == ColumnKind::Date) {
    v.field("order", c.order);
    unusual(v, "separators", c.separators, std::string());
    unusual(v, "year", c.year, false);
    unusual(v, "week", c.week, false);
    unusual(v, "day", c.day, false);
  }
  unusual(v, "missing", c.missing, false);
}

template <typename Visitor>
void visit(Visitor& v, InputDescription& d) {
  if (kReads<Visitor> || !d.columns.empty()) {
    unusual(v, "header", d.format.header, true);
    std::string separator(1, d.format.separator);
    unusual(v, "separator", separator, std::string(","));
    require(separator.size() == 1, "separator: expected one character, found \"{}\"", separator);
    d.format.separator = separator.front();
    unusual(v, "unnamedColumns", d.unnamedColumns, std::int64_t{0});
  }
  listOf(v, "columns", d.columns, [](Visitor& in, ColumnDescription& c) { visitColumn(in, c); });
  listOf(v, "omitted", d.omitted, [](Visitor& in, OmittedColumn& c) {
    in.field("name", c.name);
    in.field("reason", c.reason);
  });
  if (kReads<Visitor> || d.pictures)
    v.group("pictures", [&](Visitor& in) {
      if (!d.pictures) d.pictures.emplace();
      in.field("channels", d.pictures->channels);
      in.field("height", d.pictures->height);
      in.field("width", d.pictures->width);
    });
  unusual(v, "label", d.label, std::string());
  if (kReads<Visitor> || !d.classes.empty()) words(v, "classes", d.classes);
  listOf(v, "targets", d.targets, [](Visitor& in, TargetColumn& t) {
    in.field("name", t.name);
    in.field("mean", t.mean);
    in.field("scale", t.scale);
    visitText(in, t.text);
  });
}

}  // namespace

std::string InputDescription::toJson() const {
  InputDescription copy = *this;  // visits need mutable references
  JsonWriter writer;
  visit(writer, copy);
  return writer.line();
}

InputDescription InputDescription::fromJson(std::string_view json) {
  InputDescription description;
  JsonReader reader(json);
  visit(reader, description);
  reader.finish();
  for (const auto& column : description.columns) {
    require(std::ranges::is_sorted(column.words), "columns: the words of {} are not in order", column.name);
    const auto& quantiles = column.quantiles;
    require(quantiles.empty() || (std::ranges::is_sorted(quantiles) && quantiles.front() < quantiles.back()),
            "columns: the quantiles of {} must rise", column.name);
  }
  for (const auto& target : description.targets)
    require(target.scale > 0, "targets: the scale of {} must be positive, got {}", target.name, target.scale);
  return description;
}

}  // namespace muster
