#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/random.h"
#include "muster/core/data/data_set_iterator.h"

namespace muster {

/// An image [channels, height, width] of elements of `elementBytes` each, row-major. Nothing about the values
/// is known: a transform moves elements, or writes zeros.
struct ImageView {
  std::int64_t channels = 1, height = 1, width = 1;
  std::size_t elementBytes = 1;
};

/// Moves an image by up to `padding` pixels up or down and left or right, each way drawn uniformly, and fills
/// what comes in with zeros: the same as a crop of the image's size from the image padded with zeros on all
/// sides. Source: Lee et al. 2015, "Deeply-supervised nets", and He et al. 2016, "Deep residual learning",
/// for CIFAR-10.
struct RandomCrop {
  static constexpr std::string_view kType = "random-crop";

  std::int64_t padding = 4;

  /// @param position  of the example in its epoch.
  void apply(const ImageView& view, const std::byte* from, std::byte* to, const RandomStream& random,
             std::uint64_t position) const;
  void validate() const;
};

/// Mirrors an image, left for right, with a probability.
struct RandomFlip {
  static constexpr std::string_view kType = "random-flip";

  double probability = 0.5;

  void apply(const ImageView& view, const std::byte* from, std::byte* to, const RandomStream& random,
             std::uint64_t position) const;
  void validate() const;
};

/// An option struct that is a transform of images. `apply` writes all of `to`, and draws its random numbers
/// by `position` alone.
template <typename T>
concept ImageTransformRule = requires(const T& rule, const ImageView& view, const std::byte* from,
                                      std::byte* to, const RandomStream& random, std::uint64_t position) {
  { T::kType } -> std::convertible_to<std::string_view>;
  rule.apply(view, from, to, random, position);
  rule.validate();
};

/// Any transform: `RandomCrop{.padding = 2}`, or one of one's own. A value.
class ImageTransform {
 public:
  template <ImageTransformRule T>
  ImageTransform(const T& rule)  // NOLINT(google-explicit-constructor): a rule is a transform
      : rule_(std::make_shared<const RuleOf<T>>(rule)) {}

  std::string_view type() const { return rule_->type(); }
  void apply(const ImageView& view, const std::byte* from, std::byte* to, const RandomStream& random,
             std::uint64_t position) const {
    rule_->apply(view, from, to, random, position);
  }
  /// @throws InvalidArgument naming the option.
  void validate() const { rule_->validate(); }

 private:
  class Rule {
   public:
    virtual ~Rule() = default;
    virtual std::string_view type() const = 0;
    virtual void apply(const ImageView& view, const std::byte* from, std::byte* to,
                       const RandomStream& random, std::uint64_t position) const = 0;
    virtual void validate() const = 0;
  };
  template <typename T>
  class RuleOf final : public Rule {
   public:
    explicit RuleOf(T rule) : rule_(std::move(rule)) {}
    std::string_view type() const override { return T::kType; }
    void apply(const ImageView& view, const std::byte* from, std::byte* to, const RandomStream& random,
               std::uint64_t position) const override {
      rule_.apply(view, from, to, random, position);
    }
    void validate() const override { rule_.validate(); }

   private:
    T rule_;
  };

  std::shared_ptr<const Rule> rule_;
};

/// Gives the batches of another iterator with their images transformed: each by all transforms, one after the
/// other. Types and shapes stay as they are, bytes stay bytes.
///
/// What is drawn for an image depends on the seed, the transform (its type and its place in the list), the
/// epoch and the example's position in the epoch: neither on the batch size nor on who reads the batches
/// when. So any number of workers and batches read ahead sees the same images, and any epoch can be resumed.
class TransformingIterator : public DataSetIterator {
 public:
  /// @param inner       gives features [N, C, H, W], float32 or uint8, first of all its features; kept
  ///                    alive by the caller, and left alone by everybody else while this lives.
  /// @param transforms  at least one.
  /// @throws InvalidArgument for a transform that cannot be.
  TransformingIterator(DataSetIterator& inner, std::vector<ImageTransform> transforms, std::uint64_t seed);

  void reset(std::int64_t epoch) override;
  /// @throws InvalidArgument for features of another rank; the batch is then lost, and the next call goes on
  /// after it.
  bool next(Batch& batch) override;
  std::optional<std::int64_t> examples() const override { return inner_.examples(); }
  std::optional<std::int64_t> batchSize() const override { return inner_.batchSize(); }

 private:
  void beginEpoch(std::int64_t epoch);

  DataSetIterator& inner_;
  std::vector<ImageTransform> transforms_;
  std::uint64_t seed_;
  std::vector<RandomStream> streams_;  // [transform], of the epoch
  std::uint64_t position_ = 0;         // in the epoch, of the next example
  std::vector<std::byte> image_;       // what is transformed, while its place is written
};

}  // namespace muster
