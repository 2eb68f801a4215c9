// The page of the guide about run files.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <initializer_list>

#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/field_line.h"
#include "muster/parallel/run/detail/field_list.h"
#include "muster/parallel/run/run_schema.h"

namespace muster::detail {
namespace {

namespace json = boost::json;

/// A row of a Markdown table.
std::string row(const FieldLine& line, std::string_view name) {
  const auto code = [](const std::string& text) { return text.empty() ? "" : fmt::format("`{}`", text); };
  return fmt::format("| `{}` | {} | {} | {} |\n", name, line.values, code(line.preset), line.description);
}

constexpr std::string_view kHead = "\n| field | values | default | |\n|---|---|---|---|\n";

/// A heading for each group of `paths`, and a table of the fields in it.
std::string groupsText() {
  std::string text;
  for (const auto* const group : {"data", "training", "listeners"}) {
    const std::string prefix = std::string(group) + ".";
    text += fmt::format("\n## {}\n\nThe part `{}`: {}.\n{}", group, group, fieldAt(group).description, kHead);
    for (const auto& line : fieldLines())
      if (line.path.starts_with(prefix)) text += row(line, line.path.substr(prefix.size()));
  }
  return text;
}

using Names = std::initializer_list<std::string_view>;

bool has(Names names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// A row for each property that `wanted(name)`; one that is described elsewhere (its schema is {}) has
/// none.
template <typename Wanted>
std::string rows(const json::object& properties, const std::string& prefix, const Wanted& wanted) {
  std::string text;
  for (const auto& [name, schema] : properties)
    if (name != "type" && wanted(name) && !schema.get_object().empty()) {
      const auto line = lineOf(prefix + std::string(name), schema.get_object());
      text += row(line, line.path);
    }
  return text;
}

std::string allRows(const json::object& properties) {
  const auto all = rows(properties, "", [](std::string_view) { return true; });
  return all.empty() ? "\nIt has no options.\n" : std::string(kHead) + all;
}

/// The fields of each type of a family such as "updater". @param common  those that every type has.
std::string familyText(const json::object& family, Names common = {}, std::string_view key = "type") {
  std::string text(kHead);
  const auto& rules = family.at("allOf").as_array();
  const auto propertiesOf = [](const json::value& rule) {
    return rule.at("then").at("properties").as_object();
  };
  text += rows(propertiesOf(rules.front()), "", [&](std::string_view name) { return has(common, name); });
  for (const auto& rule : rules) {
    const auto type = wordOf(rule.at("if").at("properties").at(key).at("const"));
    const auto own =
        rows(propertiesOf(rule), type + ".", [&](std::string_view name) { return !has(common, name); });
    text += own.empty() ? fmt::format("| `{}` | | | no fields of its own |\n", type) : own;
  }
  return text;
}

/// The types of vertices that are no layers of a chain.
std::string verticesText(const json::value& defs) {
  const auto& layers = defs.at("layer").at("properties").at("type").at("enum").as_array();
  json::object others{{"allOf", json::array{}}};
  for (const auto& rule : defs.at("vertex").at("allOf").as_array()) {
    const auto& type = rule.at("if").at("properties").at("type").at("const");
    if (std::ranges::find(layers, type) == layers.end()) others.at("allOf").as_array().push_back(rule);
  }
  return familyText(others, {"name", "learningRate", "frozen", "device", "vertex", "inputs"});
}

std::string strategiesText(const json::object& strategy) {
  std::string text;
  for (const auto& rule : strategy.at("allOf").as_array()) {
    const auto& then = rule.at("then").as_object();
    text += fmt::format("\n### {}\n\n{}.\n{}", wordOf(rule.at("if").at("properties").at("name").at("const")),
                        wordOf(then.at("description")), allRows(then.at("properties").as_object()));
  }
  return text;
}

constexpr std::string_view kIntroduction = R"(# The run file

A run file says what `muster train` does: data, network, training, and what is shown and saved on the way. This page is
made from the program: `muster schema --markdown` prints it, and `muster schema` prints the schema for editors. [Start](start.md)
has the first run, and `muster example` prints a run file to begin with.

<!-- tested: not run: muster_networks_test trains run files with networks by name -->
```json
{"format": "muster-run/1", "data": {"type": "mnist"}, "network": "convnet", "training": {"workers": 4}, "listeners": {}}
```

A field that is left out has its default; an unknown one is refused with the nearest known one. On the command line
`--set training.workers=4` replaces a field by its path; many have an option (`--workers 4`). A list has commas
(`--set data.columns=size,colour`, `--set network.hidden=100,50`), or is JSON if its words have commas
(`--set 'data.columns=["a, b"]'`). `null` takes a field out of the file (`--set listeners.checkpoints=null`). A new type of
data, updater, schedule or layer, and a new name of a network or strategy, drop the fields of the old one: `--set
network.updater.learningRate.type=cosine --set network.updater.learningRate.epochs=10`. Paths of files are relative to the
working directory, and an empty text is none.
)";

constexpr std::string_view kNetwork = R"(
## network

### Networks by name

A network of the library by its name, `"network": "resnet18"` or `{"name": "resnet18", "width": 16}`. Its input shape and
its number of outputs are those of the data. On the command line: `--set network=mlp --set network.hidden=100,50`.
)";

constexpr std::string_view kInFull = R"(
### Configurations

A configuration in full is as in a model file; `muster summary --json` prints that of a run file or a model file. A
chain has `"format": "muster.MultiLayerConfiguration"` and these fields:
)";

/// Networks by name, chains and graphs.
std::string networksText(const json::value& networks) {
  const auto& forms = networks.at(0).at("allOf");
  const auto propertiesOf = [&](std::size_t form) {
    return forms.at(form).at("then").at("properties").as_object();
  };
  const auto ofGraphs = [](std::string_view name) { return has({"inputs", "vertices", "outputs"}, name); };
  return std::string(kNetwork) +
         familyText(networks.at(1).as_object(), {"seed", "l2", "weightDecay", "clipNorm"}, "name") +
         std::string(kInFull) + allRows(propertiesOf(0)) +
         "\nA graph has `\"format\": \"muster.ComputationGraphConfiguration\"`, these, and the options of "
         "training "
         "of a chain:\n" +
         std::string(kHead) + rows(propertiesOf(1), "", ofGraphs);
}

/// Layers, vertices, initialisers, updaters and schedules.
std::string partsText(const json::value& defs) {
  const auto family = [&](const char* name, Names common = {}) {
    return familyText(defs.at(name).as_object(), common);
  };
  return "\n### Layers\n" + family("layer", {"name", "learningRate", "frozen", "device"}) +
         "\n### Vertices\n\nA vertex of a graph is a layer with a name (`vertex`) and `inputs`, or one of "
         "these, which have several inputs:\n" +
         verticesText(defs) + "\n### Initialisers\n" + family("initialiser") +
         "\n### Updaters\n\nA name alone is the updater with its defaults: `\"updater\": \"adam\"`.\n" +
         family("updater") + "\n### Schedules\n\nA number alone is a value that stays the same.\n" +
         family("schedule");
}

}  // namespace

std::string runFilePage() {
  const auto schema = json::parse(runFileSchema());
  const auto& properties = schema.at("properties");
  const auto& strategy = properties.at("training").at("properties").at("strategy").at("anyOf").at(0);
  const auto& compare = properties.at("compare");
  return std::string(kIntroduction) + groupsText() +
         fmt::format("\n## compare\n\nThe part `compare`: {}.\n{}", wordOf(compare.at("description")),
                     allRows(compare.at("properties").as_object())) +
         networksText(properties.at("network").at("anyOf")) + partsText(schema.at("$defs")) +
         "\n## Strategies\n\n`training.strategy` is a name, or an object with the name and these options.\n" +
         strategiesText(strategy.as_object());
}

}  // namespace muster::detail
