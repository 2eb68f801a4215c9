#include "muster/datasets/source/load_data.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/base/text_table.h"
#include "muster/core/data/class_weights.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/data/split.h"
#include "muster/core/io/json_value.h"
#include "muster/core/io/safetensors.h"
#include "muster/datasets/detail/class_names.h"
#include "muster/datasets/image_folder.h"
#include "muster/datasets/image_placement.h"
#include "muster/datasets/image_set_iterator.h"
#include "muster/datasets/source/detail/held_out.h"
#include "muster/datasets/source/detail/table_rows.h"
#include "muster/datasets/source/named_images.h"

namespace muster {
namespace {

using detail::dealTable, detail::dealTestTable;
using detail::dropLast, detail::shuffleSeed, detail::splitSeed, detail::trainingPart, detail::untestedPart;

std::int64_t limitOf(std::int64_t wanted) {
  return wanted > 0 ? wanted : ImageSetIterator::kAll;
}

struct Images {
  std::shared_ptr<const ImageSet> train, test;  // test may be null
};

/// What a network on these images needs to know of new ones. Classes without names have their numbers.
InputDescription descriptionOf(const ImageSet& images) {
  if (!images.description().empty()) return images.description();
  const Shape& shape = images.imageShape();
  InputDescription description{
      .pictures = PictureDescription{.channels = shape[0], .height = shape[1], .width = shape[2]}};
  for (int c = 0; c < images.classes(); ++c) description.classes.push_back(fmt::format("{}", c));
  return description;
}

void deal(const DataSource& d, const Images& images, PlacementWish placement, std::span<const Device> devices,
          int workers, LoadedData& into) {
  std::pair<std::shared_ptr<const ImageSet>, std::shared_ptr<const ImageSet>> parts{
      limited(images.train, limitOf(d.trainExamples)), nullptr};
  auto test = images.test;
  if (!test && d.testExamples > 0)
    std::tie(parts.first, test) = splitAt(parts.first, untestedPart(d, parts.first->size()), splitSeed(d));
  const std::int64_t part = trainingPart(d, parts.first->size());
  if (part < parts.first->size()) parts = splitAt(parts.first, part, splitSeed(d));
  auto train = std::make_unique<ImageSetIterator>(parts.first, d.batch, shuffleSeed(d));
  dropLast(d, *train);
  std::vector<ImageSetIterator*> iterators{train.get()};
  into.train = std::move(train);
  const auto add = [&](std::shared_ptr<const ImageSet> set, std::unique_ptr<DataSetIterator>& to,
                       std::int64_t limit = ImageSetIterator::kAll) {
    auto iterator = std::make_unique<ImageSetIterator>(std::move(set), d.batch, std::nullopt, limit);
    iterators.push_back(iterator.get());
    to = std::move(iterator);
  };
  if (parts.second) add(parts.second, into.validation);
  if (test) add(test, into.test, limitOf(d.testExamples));
  into.placed = placeImages(iterators, placement, devices, workers).why;
}

Images named(const DataSource& d, LoadedData& into) {
  auto images = namedImages(d);
  into.type = images.name;
  into.title = images.title;
  into.origin = images.origin;
  into.notice = images.notice;
  return {images.train, images.test};
}

Images folders(const DataSource& d) {
  ImageFolderOptions options{.colour = d.grey ? PictureColour::Grey : PictureColour::Rgb,
                             .size = {d.height, d.width}};
  const auto train = readImageFolder(d.train, options);
  options.classes = train.classes;
  Images images{train.images, {}};
  if (d.test.empty()) return images;
  images.test = readImageFolder(d.test, options).images;
  const Shape &known = images.train->imageShape(), &tested = images.test->imageShape();
  if (tested != known)
    throw FileError(d.test, fmt::format("has pictures {}, and those of {} are {}; data.height and data.width "
                                        "bring all to one size",
                                        tested.toString(), d.train, known.toString()));
  return images;
}

Images idxFiles(const DataSource& d) {
  const auto read = [&](const std::string& images, const std::string& labels) {
    return readIdxImageSet(images, labels, static_cast<int>(d.classes));
  };
  return {read(d.trainImages, d.trainLabels),
          d.testImages.empty() ? nullptr : read(d.testImages, d.testLabels)};
}

using Tensors = LabelledTensors;

/// The training examples, and those to validate with, if any.
std::pair<Tensors, Tensors> validated(const DataSource& d, const Tensors& all) {
  require(all.features.shape().rank() > 0, "data.train: features need examples, got {}",
          all.features.toString());
  const std::int64_t examples = all.features.shape()[0], part = trainingPart(d, examples);
  require(all.labels.shape().rank() > 0 && all.labels.shape()[0] == examples,
          "data.train: features {} and labels {} differ in their examples", all.features.toString(),
          all.labels.toString());
  if (part == examples) return {all, {}};
  return splitAt(all.features, all.labels, part, splitSeed(d));
}

void deal(const DataSource& d, Tensors train, std::optional<Tensors> test, LoadedData& into) {
  const auto make = [&](const Tensors& table, std::optional<std::uint64_t> seed) {
    return std::make_unique<InMemoryDataSetIterator>(table.features, table.labels, d.batch, seed);
  };
  if (!test && d.testExamples > 0 && train.features.shape().rank() > 0) {
    const auto part = untestedPart(d, train.features.shape()[0]);
    std::tie(train, test) = splitAt(train.features, train.labels, part, splitSeed(d));
  }
  const auto [first, second] = validated(d, train);
  auto training = make(first, shuffleSeed(d));
  dropLast(d, *training);
  into.train = std::move(training);
  if (second.features.defined()) into.validation = make(second, std::nullopt);
  if (!test) return;
  require(test->features.shape().dropFirst() == train.features.shape().dropFirst(),
          "data.test: its features are {}, and those to train with {}", test->features.toString(),
          train.features.toString());
  into.test = make(*test, std::nullopt);
}

Tensors readTensors(const std::string& path) {
  const Safetensors file = readSafetensors(path);
  const auto find = [&](std::string_view name) {
    const Tensor* tensor = file.find(name);
    if (!tensor) throw FileError(path, fmt::format("has no tensor called {}", name));
    return *tensor;
  };
  return {find("features"), find("labels")};
}

/// [class] the weights, of which the source gives some by name.
std::vector<float> classWeightsOf(const DataSource& d, const InputDescription& description) {
  std::vector<float> given(d.classWeights.begin(), d.classWeights.end());
  if (d.weightedClasses.empty()) return given;
  const auto& classes = description.classes;
  require(!classes.empty(),
          "data.classWeights: these data have no classes with names; a list has a weight for each class");
  const detail::ClassNumbers numbers(classes);
  std::vector<float> weights(classes.size(), 1);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto found = numbers.find(d.weightedClasses[i]);
    require(found.has_value(), "data.classWeights: there is no class {}; there are {}",
            quoteJson(d.weightedClasses[i]), csvList(classes));
    weights[static_cast<std::size_t>(*found)] = given[i];
  }
  return weights;
}

}  // namespace

LoadedData loadData(const DataSource& d, PlacementWish placement, std::span<const Device> devices,
                    int workers, const InputDescription& known) {
  d.validate();
  LoadedData loaded;
  loaded.type = loaded.title = d.type;
  loaded.origin = d.train.empty() ? d.trainImages : d.train;
  if (d.type == "csv" || d.type == "safetensors") {
    require(placement != PlacementWish::Device,
            "training.placement: device is for images, not for data of type {}", d.type);
    if (d.type == "csv") {
      dealTable(d, known, loaded);
    } else {
      deal(d, readTensors(d.train), d.test.empty() ? std::nullopt : std::optional(readTensors(d.test)),
           loaded);
    }
  } else {
    const Images images = d.type == "idx" ? idxFiles(d) : d.type == "images" ? folders(d) : named(d, loaded);
    deal(d, images, placement, devices, workers, loaded);
    loaded.description = descriptionOf(*images.train);
    if (!known.empty()) loaded.description.requireSame(known, loaded.origin, "the model");
  }
  for (const auto& [field, set] : {std::pair{"train", loaded.train.get()}, {"test", loaded.test.get()}})
    require(set == nullptr || set->examples().value_or(1) > 0, "data.{}: there are no examples in it", field);
  loaded.classWeights = classWeightsOf(d, loaded.description);
  if (!loaded.classWeights.empty())
    loaded.weighted = std::make_unique<ClassWeights>(*loaded.train, loaded.classWeights);
  return loaded;
}

LoadedData loadData(const DataSource& data) {
  return loadData(data, PlacementWish::Host, std::array{Device::cpu()}, 1);
}

std::string classWeightsLine(const LoadedData& data) {
  constexpr std::size_t kMost = 20;
  const auto& names = data.description.classes;
  std::vector<std::string> weights;
  for (std::size_t c = 0; c < std::min(data.classWeights.size(), kMost); ++c)
    weights.push_back(fmt::format("{} {}",
                                  c < names.size() ? printableText(csvField(names[c])) : fmt::format("{}", c),
                                  data.classWeights[c]));
  if (weights.empty()) return {};
  return fmt::format("class weights: {}{}", fmt::join(weights, ", "),
                     data.classWeights.size() > kMost ? ", ..." : "");
}

std::optional<LoadedData> loadTestData(const DataSource& d, const InputDescription& known) {
  if (d.test.empty()) return std::nullopt;
  LoadedData loaded;
  loaded.type = loaded.title = d.type;
  loaded.origin = d.test;
  loaded.description = known;
  loaded.classWeights = classWeightsOf(d, known);
  if (d.type == "csv" && !known.columns.empty()) {
    dealTestTable(d, loaded);
  } else if (d.type == "images" && known.pictures) {
    const auto& brought = *known.pictures;
    const auto images =
        readImageFolder(d.test, {.colour = brought.channels == 1 ? PictureColour::Grey : PictureColour::Rgb,
                                 .size = {brought.height, brought.width},
                                 .classes = known.classes});
    loaded.test = std::make_unique<ImageSetIterator>(images.images, d.batch);
  } else {
    return std::nullopt;
  }
  require(loaded.test->examples().value_or(1) > 0, "data.test: there are no examples in it");
  return loaded;
}

}  // namespace muster
