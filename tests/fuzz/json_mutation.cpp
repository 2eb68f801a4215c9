#include "tests/fuzz/json_mutation.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "tests/fuzz/hostile_values.h"
#include "tests/fuzz/json_places.h"

namespace muster::fuzz {
namespace {

namespace json = boost::json;

json::value hostileNumber(const json::value& before, Draw& draw) {
  static constexpr std::array kDoubles{0.5, -0.0, 1e-320, 1e308, -1e308, 1.0, 2.5, 4294967296.0};
  switch (draw.below(5)) {
    case 0:
      return draw.of(kDoubles);
    case 1:
      return ~std::uint64_t{0} - draw.below(2);
    case 2:
      if (before.is_int64())
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(before.get_int64()) + draw.below(3) - 1);
      return draw.hostile();
    default:
      return draw.hostile();
  }
}

/// A value that the field of a place has elsewhere.
void exchange(const Place& place, const Vocabulary& vocabulary, Draw& draw) {
  if (const auto known = vocabulary.of(place.field); !known.empty()) *place.value = draw.of(known);
}

/// Makes a text one of the others in its document, such as the name of another part.
void rename(json::value& text, const std::vector<Place>& places, Draw& draw) {
  std::vector<const json::value*> all;
  for (const auto& place : places)
    if (place.value->is_string()) all.push_back(place.value);
  text = json::value(*draw.of(all));
}

std::string anyKey(const std::vector<Place>& places, Draw& draw) {
  for (int tries = 0; tries < 8; ++tries) {
    const auto* const object = draw.of(places).value->if_object();
    if (object != nullptr && !object->empty())
      return std::string((object->begin() + static_cast<std::ptrdiff_t>(draw.below(object->size())))->key());
  }
  return "name";
}

void leaveOut(const Place& place, Draw& draw) {
  if (place.parent == nullptr) return;
  if (auto* const array = place.parent->if_array())
    array->erase(array->begin() + static_cast<std::ptrdiff_t>(draw.below(array->size())));
  else if (auto& object = place.parent->get_object(); !object.empty())
    object.erase(object.begin() + static_cast<std::ptrdiff_t>(draw.below(object.size())));
}

void repeat(json::value& value, const std::vector<Place>& places, Draw& draw) {
  if (auto* const array = value.if_array(); array != nullptr && !array->empty()) {
    const json::value element = draw.of(*array);
    for (std::size_t times = 1 + draw.below(4); times-- > 0;)
      array->insert(array->begin() + static_cast<std::ptrdiff_t>(draw.below(array->size() + 1)), element);
  } else if (auto* const object = value.if_object(); object != nullptr && !object->empty()) {
    const json::value element =
        (object->begin() + static_cast<std::ptrdiff_t>(draw.below(object->size())))->value();
    (*object)[anyKey(places, draw)] = element;
  }
}

void nest(json::value& value, Draw& draw) {
  static constexpr std::array<std::size_t, 5> kDepths{1, 2, 31, 33, 200};
  for (std::size_t depth = draw.of(kDepths); depth-- > 0;) {
    json::value inner = std::move(value);
    if (draw.oneIn(2))
      value = json::array{std::move(inner)};
    else
      value = json::object{{"type", std::move(inner)}};
  }
}

json::value anyWord(Draw& draw) {
  static constexpr std::array<std::string_view, 12> kWords{
      "",    "updater.x", "counters.iteration", "a\nb", "\x1B[2J", "F32", "I64", "U8", "F64", "cuda:1",
      "cpu", "features"};
  return draw.oneIn(20) ? json::value(std::string(5000, 'n')) : json::value(draw.of(kWords));
}

}  // namespace

void mutateJson(json::value& root, Draw& draw, const Vocabulary& vocabulary) {
  const std::vector<Place> places = placesIn(root);
  const Place place = draw.of(places);
  json::value& value = *place.value;
  const auto hostile = hostileValues();
  switch (draw.below(14)) {
    case 0:
      return leaveOut(place, draw);
    case 1:
      return repeat(value, places, draw);
    case 2:
      if (draw.oneIn(4)) nest(value, draw);
      return;
    case 3: {
      json::value other = *draw.of(places).value;
      value = std::move(other);
      return;
    }
    case 4:
    case 5:
    case 6:
      return exchange(place, vocabulary, draw);
    case 7:
      value = anyWord(draw);
      return;
    case 8:
      value = draw.of(hostile);
      return;
    default:
      if (value.is_number())
        value = hostileNumber(value, draw);
      else if (value.is_bool())
        value = !value.get_bool();
      else if (value.is_string() && draw.oneIn(2))
        rename(value, places, draw);
      else
        for (const auto& leaf : places)  // numbers are what hostile files are about
          if (leaf.value->is_number() && draw.oneIn(3)) {
            *leaf.value = hostileNumber(*leaf.value, draw);
            return;
          }
  }
}

std::optional<json::value> jsonIn(std::string_view text) {
  json::parse_options options;
  options.max_depth = 500;
  json::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error, {}, options);
  if (error) return std::nullopt;
  return value;
}

std::string mutateJsonText(std::string_view text, Draw& draw, const Vocabulary& vocabulary) {
  auto value = jsonIn(text);
  if (!value || draw.oneIn(16)) {
    Bytes bytes = bytesOf(text);
    mutateBytes(bytes, draw);
    return std::string(textOf(bytes));
  }
  for (std::size_t times = 1 + draw.below(3); times-- > 0;) mutateJson(*value, draw, vocabulary);
  return json::serialize(*value);
}

std::string mutateJsonLines(std::string_view text, Draw& draw) {
  std::vector<std::string> lines;
  for (std::size_t end = 0; !text.empty(); text.remove_prefix(end)) {
    end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
  }
  if (lines.empty()) lines.emplace_back("{}\n");
  std::string& line = draw.of(lines);
  switch (draw.below(8)) {
    case 0:
      line.clear();
      break;
    case 1:
      line += std::string(line);
      break;
    case 2:
      std::swap(line, draw.of(lines));
      break;
    default:
      const bool ended = line.ends_with('\n');
      line = mutateJsonText(ended ? std::string_view(line).substr(0, line.size() - 1) : line, draw);
      if (ended || draw.oneIn(4)) line += '\n';
  }
  std::string joined;
  for (const auto& one : lines) joined += one;
  return joined;
}

}  // namespace muster::fuzz
