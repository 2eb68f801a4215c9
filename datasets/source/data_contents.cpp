#include "muster/datasets/source/data_contents.h"

#include "muster/core/io/json_fields.h"

namespace muster {
namespace {

void visit(Fields& f, ExampleContents& contents) {
  f.field("examples", contents.examples);
  f.field("ordered", contents.ordered);
  f.field("unordered", contents.unordered);
}

void visit(auto& json, DataContents& contents) {
  json.group("training", [&](Fields& in) { visit(in, contents.training); });
  json.group("test", [&](Fields& in) { visit(in, contents.test); });
}

}  // namespace

std::string DataContents::toJson() const {
  DataContents copy = *this;  // visits need mutable references
  JsonWriter json;
  visit(json, copy);
  if (!earlier.empty())
    json.list("earlier", earlier.size(), [&](std::size_t i, JsonWriter& in) {
      auto& one = copy.earlier[i];
      in.field("model", one.model);
      if (one.data.type.empty()) return;
      in.putJson("data", one.data.toJson());
      in.group("training", [&](Fields& of) { visit(of, one.training); });
    });
  return json.line();
}

DataContents DataContents::parse(std::string_view text) {
  JsonReader json(text);
  DataContents contents;
  visit(json, contents);
  json.list("earlier", [&](JsonReader& in) {
    auto& one = contents.earlier.emplace_back();
    in.field("model", one.model);
    if (const auto data = in.json("data")) one.data = DataSource::parse(*data);
    in.group("training", [&](Fields& of) { visit(of, one.training); });
  });
  json.finish();
  return contents;
}

}  // namespace muster
