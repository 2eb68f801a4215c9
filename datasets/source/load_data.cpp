#include "muster/datasets/source/load_data.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/base/text_table.h"
#include "muster/core/data/class_weights.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/data/split.h"
#include "muster/core/io/json_value.h"
#include "muster/core/io/output_path.h"
#include "muster/datasets/detail/class_names.h"
#include "muster/datasets/image_folder.h"
#include "muster/datasets/image_placement.h"
#include "muster/datasets/image_set_iterator.h"
#include "muster/datasets/source/detail/deal_rows.h"
#include "muster/datasets/source/detail/example_hashes.h"
#include "muster/datasets/source/detail/held_out.h"
#include "muster/datasets/source/detail/table_rows.h"
#include "muster/datasets/source/detail/tensor_file.h"
#include "muster/datasets/source/named_images.h"

namespace muster {
namespace {

using detail::dealRows, detail::dealTable, detail::dealTestTable;
using detail::dropLast, detail::lackingClasses, detail::shuffleSeed;
using detail::hashesOf, detail::PartHashes, detail::partHashes;
using detail::readTensorFile, detail::TensorFile;

std::int64_t limitOf(std::int64_t wanted) {
  return wanted > 0 ? wanted : ImageSetIterator::kAll;
}

struct Images {
  std::shared_ptr<const ImageSet> train, test;          // test may be null
  std::vector<std::string> files = {}, testFiles = {};  // of directories
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

PartHashes deal(const DataSource& d, const Images& images, PlacementWish placement,
                std::span<const Device> devices, int workers, LoadedData& into) {
  into.rows = dealRows(d, images.train->labels(), limitOf(d.trainExamples), images.test != nullptr);
  into.heldOutWarnings =
      lackingClasses(d, images.train->labels(), into.rows, images.train->description().classes);
  if (images.test) into.rows.test = firstRows(images.test->labels(), limitOf(d.testExamples));
  std::vector<ImageSetIterator*> iterators;
  const auto make = [&](const std::shared_ptr<const ImageSet>& of, std::span<const std::int64_t> rows,
                        std::optional<std::uint64_t> seed) {
    auto iterator = std::make_unique<ImageSetIterator>(std::ssize(rows) == of->size() ? of : of->part(rows),
                                                       d.batch, seed);
    iterators.push_back(iterator.get());
    return iterator;
  };
  auto train = make(images.train, into.rows.train, shuffleSeed(d));
  dropLast(d, *train);
  into.train = std::move(train);
  if (!into.rows.validation.empty()) into.validation = make(images.train, into.rows.validation, std::nullopt);
  if (images.test || !into.rows.test.empty())
    into.test = make(images.test ? images.test : images.train, into.rows.test, std::nullopt);
  into.placed = placeImages(iterators, placement, devices, workers).why;
  const auto tested = images.test ? std::optional(hashesOf(*images.test)) : std::nullopt;
  return partHashes(into.rows, hashesOf(*images.train), tested ? &*tested : nullptr);
}

Images named(const DataSource& d, LoadedData& into) {
  auto images = namedImages(d);
  into.type = images.name;
  into.title = images.title;
  into.origin = images.origin;
  into.notice = images.notice;
  return {.train = images.train, .test = images.test};
}

Images folders(const DataSource& d) {
  ImageFolderOptions options{.colour = d.grey ? PictureColour::Grey : PictureColour::Rgb,
                             .size = {d.height, d.width}};
  auto train = readImageFolder(d.train, options);
  options.classes = train.classes;
  Images images{.train = train.images, .test = {}, .files = std::move(train.files)};
  if (d.test.empty()) return images;
  auto test = readImageFolder(d.test, options);
  images.test = test.images;
  images.testFiles = std::move(test.files);
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
  return {.train = read(d.trainImages, d.trainLabels),
          .test = d.testImages.empty() ? nullptr : read(d.testImages, d.testLabels)};
}

/// [example] Classes to give each part in equal shares; one for all if the labels are no classes.
std::vector<std::int64_t> classesOf(const TensorFile& all) {
  std::vector<std::int64_t> classes(static_cast<std::size_t>(all.labels.shape()[0]));
  if (all.labels.dtype() == DType::Int64 && all.labels.shape().rank() == 1)
    std::ranges::copy(all.labels.span<std::int64_t>(), classes.begin());
  return classes;
}

Tensor rowsOf(const Tensor& all, std::span<const std::int64_t> rows) {
  if (std::ssize(rows) == all.shape()[0]) return all;
  Tensor part = Tensor::empty(all.shape().dropFirst().prepend(std::ssize(rows)), all.dtype());
  gatherRows(all, rows, part);
  return part;
}

/// @throws InvalidArgument for class weights of other classes than the labels have.
void requireWeightsFit(const DataSource& d, const TensorFile& train) {
  if (d.classWeights.empty() || !d.weightedClasses.empty()) return;
  const auto weights = plural(d.classWeights.size(), "weight");
  if (const auto& most = train.largest)
    require(
        most->label < std::ssize(d.classWeights),
        "data.classWeights has {}, and {} has classes from 0 to {}, the label of example {} (counted from "
        "0); each class needs a weight",
        weights, d.train, most->label, most->example);
  else
    require(train.labels.shape()[-1] == std::ssize(d.classWeights),
            "data.classWeights has {}, and the labels of {} are {}; weights are for int64 classes, or for "
            "float32 labels with a column for each class",
            weights, d.train, train.labels.toString());
}

PartHashes deal(const DataSource& d, const TensorFile& train, const std::optional<TensorFile>& test,
                LoadedData& into) {
  const auto make = [&](const TensorFile& all, std::span<const std::int64_t> rows,
                        std::optional<std::uint64_t> seed) {
    auto iterator = std::make_unique<InMemoryDataSetIterator>(rowsOf(all.features, rows),
                                                              rowsOf(all.labels, rows), d.batch, seed);
    std::vector<NamedTensor> masks;
    for (const auto& mask : all.masks) masks.push_back({mask.name, rowsOf(mask.value, rows)});
    iterator->setMasks(std::move(masks));
    return iterator;
  };
  const auto classes = classesOf(train);
  auto& rows = into.rows = dealRows(d, classes, ImageSetIterator::kAll, test.has_value());
  requireWeightsFit(d, train);
  into.heldOutWarnings = lackingClasses(d, classes, rows, {});
  for (const auto* const file : {&train, test ? &*test : nullptr})
    if (file && file->largest) into.largestLabels.push_back(*file->largest);
  auto training = make(train, rows.train, shuffleSeed(d));
  dropLast(d, *training);
  into.train = std::move(training);
  if (!rows.validation.empty()) into.validation = make(train, rows.validation, std::nullopt);
  if (!test && !rows.test.empty()) into.test = make(train, rows.test, std::nullopt);
  const auto hashes = hashesOf(train);
  if (!test) return partHashes(rows, hashes, nullptr);
  require(test->features.shape().dropFirst() == train.features.shape().dropFirst(),
          "data.test: its features are {}, and those to train with {}", test->features.toString(),
          train.features.toString());
  require(test->labels.dtype() == train.labels.dtype() &&
              test->labels.shape().dropFirst() == train.labels.shape().dropFirst(),
          "data.test: its labels are {}, and those to train with {}", test->labels.toString(),
          train.labels.toString());
  const auto masksSteps = [](const TensorFile& file) {
    return std::ranges::find(file.masks, "features", &NamedTensor::name) != file.masks.end();
  };
  require(masksSteps(*test) == masksSteps(train), "data.test: only {} has a featuresMask",
          masksSteps(*test) ? d.test : d.train);
  rows.test = firstRows(classesOf(*test), ImageSetIterator::kAll);
  into.test = make(*test, rows.test, std::nullopt);
  const auto tested = hashesOf(*test);
  return partHashes(rows, hashes, &tested);
}

/// [class] the weights, of which the source gives some by name.
std::vector<float> classWeightsOf(const DataSource& d, const InputDescription& description) {
  std::vector<float> factors(d.classWeights.begin(), d.classWeights.end());
  const auto& classes = description.classes;
  if (d.weightedClasses.empty()) {
    require(factors.empty() || classes.empty() || factors.size() == classes.size(),
            "data.classWeights: there are {} weights for {} classes", factors.size(), classes.size());
    return factors;
  }
  require(!classes.empty(),
          "data.classWeights: these data have no classes with names; a list has a weight for each class");
  const detail::ClassNumbers numbers(classes);
  std::vector<float> weights(classes.size(), 1);
  std::vector<bool> given(classes.size());
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const auto found = numbers.find(d.weightedClasses[i]);
    require(found.has_value(), "data.classWeights: there is no class {}; there are {}",
            quoteJson(d.weightedClasses[i]), csvList(classes));
    const auto place = static_cast<std::size_t>(*found);
    require(!given[place], "data.classWeights: class {} has two weights", quoteJson(classes[place]));
    given[place] = true;
    weights[place] = factors[i];
  }
  return weights;
}

}  // namespace

LoadedData loadData(const DataSource& d, PlacementWish placement, std::span<const Device> devices,
                    int workers, const InputDescription& known, std::string_view part) {
  d.validate();
  LoadedData loaded;
  loaded.type = loaded.title = d.type;
  loaded.origin = d.train.empty() ? d.trainImages : d.train;
  PartHashes hashes;
  if (d.type == "csv" || d.type == "safetensors") {
    require(placement != PlacementWish::Device,
            "training.placement: device is for images, not for data of type {}", d.type);
    if (d.type == "csv") {
      hashes = dealTable(d, known, loaded, part);
    } else {
      hashes = deal(d, readTensorFile(d.train),
                    d.test.empty() ? std::nullopt : std::optional(readTensorFile(d.test)), loaded);
    }
  } else {
    Images images = d.type == "idx" ? idxFiles(d) : d.type == "images" ? folders(d) : named(d, loaded);
    hashes = deal(d, images, placement, devices, workers, loaded);
    loaded.files = std::move(images.files);
    loaded.testFiles = std::move(images.testFiles);
    loaded.description = descriptionOf(*images.train);
    if (!known.empty()) loaded.description.requireSame(known, loaded.origin, "the model");
  }
  for (const auto& [field, set] : {std::pair{"train", loaded.train.get()}, {"test", loaded.test.get()}})
    require(set == nullptr || set->examples().value_or(1) > 0, "data.{}: there are no examples in it", field);
  if (!d.test.empty()) loaded.origin += " and " + d.test;
  loaded.contents = detail::contentsOf(hashes);
  loaded.testWarning = detail::sharedRemark(d, hashes);
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
  PartHashes hashes{.ownTest = true};
  if (d.type == "csv" && !known.columns.empty()) {
    hashes.test = dealTestTable(d, loaded);
  } else if (d.type == "images" && known.pictures) {
    const auto& brought = *known.pictures;
    auto images =
        readImageFolder(d.test, {.colour = brought.channels == 1 ? PictureColour::Grey : PictureColour::Rgb,
                                 .size = {brought.height, brought.width},
                                 .classes = known.classes});
    loaded.test = std::make_unique<ImageSetIterator>(images.images, d.batch);
    loaded.rows.test = firstRows(images.images->labels(), ImageSetIterator::kAll);
    loaded.testFiles = std::move(images.files);
    hashes.test = hashesOf(*images.images);
  } else {
    return std::nullopt;
  }
  require(loaded.test->examples().value_or(1) > 0, "data.test: there are no examples in it");
  loaded.classWeights = classWeightsOf(d, known);
  loaded.contents = detail::contentsOf(hashes);
  if (isSameFile(d.test, d.train)) loaded.testWarning = detail::sameRemark(d);
  return loaded;
}

}  // namespace muster
