#include "muster/datasets/picture_model.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/data/in_parallel.h"
#include "muster/core/data/output_names.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/eval/detail/rows.h"
#include "muster/core/io/input_file.h"
#include "muster/datasets/image_folder.h"
#include "muster/datasets/image_set_iterator.h"

namespace muster {
namespace {

constexpr std::size_t kPicturesAtOnce = 32;

/// @throws InvalidArgument if the description does not fit the network.
void requirePicturesFit(const Network& network) {
  const auto& description = network.inputDescription();
  const auto& pictures = description.pictures;
  const auto& classes = description.classes;
  require(description.columns.empty(),
          "it is a model of a table, not of pictures; TableModel predicts with it");
  require(
      pictures.has_value() && !classes.empty(),
      "the model does not know the size of its pictures and its classes; it was trained on other data, or "
      "saved without setInputDescription");
  require(pictures->channels == 1 || pictures->channels == 3,
          "the model's pictures have {} channels, not 1 or 3", pictures->channels);
  const Shape input = network.exampleFeatures().features.front().value.shape().dropFirst();
  const Shape brought{pictures->channels, pictures->height, pictures->width};
  require(input == brought, "the model reads {}, and its description brings pictures to {}", input.toString(),
          brought.toString());
  const Shape outputs = network.outputShapes().back().second;
  require(outputs.rank() == 1, "the model has outputs {}, and a picture has one of each class",
          outputs.toString());
  requireOutputs(description, outputs[0]);
}

std::vector<std::filesystem::path> pathsOf(const std::filesystem::path& path,
                                           std::vector<std::string>& files) {
  if (fileTypeOf(path) != std::filesystem::file_type::directory) {
    files = {path.filename().string()};
    return {path};
  }
  files = picturesIn(path, /*warnLeftOut=*/true);
  if (files.empty()) throw FileError(path, "has no pictures: no files .png, .jpg or .jpeg");
  std::vector<std::filesystem::path> paths;
  for (const auto& file : files) paths.push_back(path / file);
  return paths;
}

}  // namespace

PictureModel::PictureModel(std::unique_ptr<Network> network) : network_(std::move(network)) {
  require(network_ != nullptr, "PictureModel: there is no network");
  requirePicturesFit(*network_);
}

PictureModel PictureModel::load(const std::filesystem::path& path) {
  try {
    return PictureModel(Network::load(path));
  } catch (const InvalidArgument& error) {
    throw FileError(path, error.what());
  }
}

PictureOptions PictureModel::options() const {
  const auto& pictures = *description().pictures;
  return {.colour = pictures.channels == 1 ? PictureColour::Grey : PictureColour::Rgb,
          .size = {pictures.height, pictures.width}};
}

std::pair<Tensor, std::vector<std::optional<FileError>>> PictureModel::outputsFor(
    std::span<const std::filesystem::path> paths) {
  const auto& pictures = *description().pictures;
  const Shape shape{pictures.channels, pictures.height, pictures.width};
  const std::int64_t width = network_->outputShapes().back().second[0];
  Tensor outputs = Tensor::empty({std::ssize(paths), width});
  std::vector<std::optional<FileError>> problems(paths.size());
  for (std::size_t begin = 0; begin < paths.size(); begin += kPicturesAtOnce) {
    const std::size_t count = std::min(kPicturesAtOnce, paths.size() - begin);
    Tensor batch = Tensor::zeros(shape.prepend(static_cast<std::int64_t>(count)), DType::UInt8);
    inParallel(count, [&](std::size_t i) {
      try {
        const Tensor picture = readPicture(paths[begin + i], options());
        std::ranges::copy(picture.span<std::uint8_t>(), batch.data<std::uint8_t>() + i * picture.bytes());
      } catch (const FileError& error) {
        problems[begin + i] = error;
      }
    });
    const Tensor some = network_->output(batch);
    std::ranges::copy(some.span<float>(), outputs.data<float>() + static_cast<std::int64_t>(begin) * width);
  }
  return {outputs, problems};
}

PicturePredictions PictureModel::predict(const std::filesystem::path& path) {
  std::vector<std::string> files;
  const auto paths = pathsOf(path, files);
  const auto [outputs, problems] = outputsFor(paths);
  PicturePredictions predictions;
  std::vector<std::int64_t> read;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!problems[i]) {
      read.push_back(static_cast<std::int64_t>(i));
      predictions.files.push_back(std::move(files[i]));
    } else {
      predictions.unreadable.push_back(problems[i]->what());
    }
  }
  if (read.empty()) throw *problems.front();
  for (const auto& problem : predictions.unreadable) logWarning("{}; it is not predicted", problem);
  Tensor rows = Tensor::empty({std::ssize(read), outputs.shape()[1]});
  gatherRows(outputs, read, rows);
  for (std::int64_t row = 0; row < rows.shape()[0]; ++row)
    detail::requireFinitePredictions(detail::rowOf(rows, row), row, {rows.shape()[0]}, "predict", [&] {
      return fmt::format(" ({})", predictions.files[static_cast<std::size_t>(row)]);
    });
  static_cast<Predictions&>(predictions) = namedOutputs(description(), rows, network_->task());
  return predictions;
}

AnyEvaluation PictureModel::evaluate(const std::filesystem::path& directory) {
  const auto folder = readImageFolder(
      directory, {.colour = options().colour, .size = options().size, .classes = description().classes});
  ImageSetIterator data(folder.images, kPicturesAtOnce);
  return network_->evaluateTask(data);
}

}  // namespace muster
