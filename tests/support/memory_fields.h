#pragma once

#include <charconv>
#include <map>
#include <string>

#include "muster/core/base/error.h"
#include "muster/core/base/fields.h"

namespace muster::test {

/// A configuration in memory: values as text, objects with type names.
struct FieldTree {
  std::string type;
  std::map<std::string, std::string, std::less<>> values;
  std::map<std::string, FieldTree, std::less<>> objects;

  bool operator==(const FieldTree&) const = default;
};

/// Writes visited fields into a tree.
class TreeWriter : public Fields {
 public:
  explicit TreeWriter(FieldTree& tree) : tree_(tree) {}
  void field(std::string_view name, bool& value) override { write(name, value); }
  void field(std::string_view name, std::int64_t& value) override { write(name, value); }
  void field(std::string_view name, std::uint64_t& value) override { write(name, value); }
  void field(std::string_view name, double& value) override { write(name, value); }
  void field(std::string_view name, std::string& value) override { write(name, value); }
  void field(std::string_view name, Shape& value) override { write(name, value.toString()); }
  void choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) override {
    write(name, names[index]);
  }
  void object(std::string_view name, std::string& type, const std::function<void(Fields&)>& inside) override {
    FieldTree& child = tree_.objects[std::string(name)];
    child.type = type;
    TreeWriter writer(child);
    inside(writer);
  }

 private:
  template <typename T>
  void write(std::string_view name, const T& value) {
    tree_.values[std::string(name)] = fmt::format("{}", value);
  }
  FieldTree& tree_;
};

/// Replaces visited fields by the tree's values; fields that the tree lacks do not change.
class TreeReader : public Fields {
 public:
  explicit TreeReader(const FieldTree& tree) : tree_(tree) {}
  void field(std::string_view name, bool& value) override {
    if (const auto* text = find(name)) value = *text == "true";
  }
  void field(std::string_view name, std::int64_t& value) override { parse(name, value); }
  void field(std::string_view name, std::uint64_t& value) override { parse(name, value); }
  void field(std::string_view name, double& value) override { parse(name, value); }
  void field(std::string_view name, std::string& value) override {
    if (const auto* text = find(name)) value = *text;
  }
  void field(std::string_view name, Shape&) override {
    require(!find(name), "{}: shapes are not read", name);
  }
  void choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) override {
    const auto* text = find(name);
    for (std::size_t i = 0; text && i < names.size(); ++i)
      if (names[i] == *text) index = i;
  }
  void object(std::string_view name, std::string& type, const std::function<void(Fields&)>& inside) override {
    const auto found = tree_.objects.find(name);
    if (found == tree_.objects.end()) return;
    type = found->second.type;
    TreeReader reader(found->second);
    inside(reader);
  }

 private:
  const std::string* find(std::string_view name) const {
    const auto found = tree_.values.find(name);
    return found == tree_.values.end() ? nullptr : &found->second;
  }
  template <typename T>
  void parse(std::string_view name, T& value) {
    if (const auto* text = find(name)) std::from_chars(text->data(), text->data() + text->size(), value);
  }
  const FieldTree& tree_;
};

/// The fields written by visiting `value` as the field "it".
template <typename T>
FieldTree written(T value) {
  FieldTree tree;
  TreeWriter writer(tree);
  value.field("it", writer);
  return tree;
}

}  // namespace muster::test
