#include "muster/parallel/gloo/lane.h"

#include <span>
#include <utility>

namespace muster {
namespace {

/// Longer than any training waits. NodeLink's heartbeats detect a silent node.
constexpr std::chrono::hours kForEver{100};

}  // namespace

void Outcomes::done(int ticket, int node, bool received) {
  const Lock lock(mutex_);
  done_.push_back({ticket, node, received});
  if (news_) news_();
}

void Outcomes::lost(int node, const std::string& why) {
  const Lock lock(mutex_);
  losses_.push_back({node, why});
  if (news_) news_();
}

void Outcomes::failed(std::exception_ptr problem) {
  const Lock lock(mutex_);
  if (!problem_) problem_ = std::move(problem);
  if (news_) news_();
}

void Outcomes::tell(std::function<void()> news) {
  const Lock lock(mutex_);
  news_ = std::move(news);
}

bool Outcomes::take(std::vector<int>& tickets, const std::function<void(int)>& hear) {
  const Lock lock(mutex_);
  const bool any = !done_.empty();
  for (const Done& one : done_) {
    tickets.push_back(one.ticket);
    if (one.received) hear(one.node);
  }
  done_.clear();
  return any;
}

std::vector<Outcomes::Loss> Outcomes::losses() {
  const Lock lock(mutex_);
  if (problem_) std::rethrow_exception(problem_);
  return std::exchange(losses_, {});
}

Lane::Parcel::Parcel(const NodeMessage& what, int number)
    : message(what),
      ticket(number),
      announcement{.channel = what.channel, .bytes = static_cast<std::int64_t>(what.bytes.size())} {}

bool Lane::Parcel::wait(gloo::transport::UnboundBuffer& part) const {
  return message.way == NodeMessage::Way::Send ? part.waitSend(nullptr, kForEver)
                                               : part.waitRecv(nullptr, kForEver);
}

void Lane::Parcel::requireExpected() const {
  const Announcement expected;
  if (announcement.magic != expected.magic || announcement.channel != message.channel)
    throw NodeFailure(fmt::format("node {} has sent bytes that are not a message of muster", message.node));
  const auto bytes = static_cast<std::int64_t>(message.bytes.size());
  if (announcement.bytes != bytes)
    throw NodeFailure(fmt::format("node {} has sent {} bytes where {} were expected", message.node,
                                  announcement.bytes, bytes));
}

void Lane::Parcel::giveUp() {
  for (auto* part : {head.get(), body.get()}) {
    if (!part) continue;
    part->abortWaitRecv();
    part->abortWaitSend();
  }
}

Lane::Lane(std::shared_ptr<gloo::transport::Context> context, Outcomes& outcomes)
    : context_(std::move(context)), outcomes_(outcomes), thread_([this] { run(); }) {}

Lane::~Lane() {
  {
    const Lock lock(mutex_);
    ending_ = true;
    for (Parcel& parcel : parcels_) parcel.giveUp();
    changed_.notify_all();
  }
  thread_.join();
}

void Lane::begin(const NodeMessage& message, int ticket) {
  const Lock lock(mutex_);
  Parcel& parcel = parcels_.emplace_back(message, ticket);
  const auto& bytes = message.bytes;
  parcel.head = context_->createUnboundBuffer(&parcel.announcement, sizeof(Announcement));
  parcel.body = context_->createUnboundBuffer(bytes.data(), bytes.size());
  const auto headName = static_cast<std::uint64_t>(message.channel) << 32U,
             bodyName = headName | bytes.size();
  if (message.way == NodeMessage::Way::Send) {
    parcel.head->send(message.node, headName);
    parcel.body->send(message.node, bodyName);
  } else {
    parcel.head->recv(message.node, headName);
    parcel.body->recv(message.node, bodyName);
  }
  changed_.notify_all();
}

void Lane::run() {
  for (;;) {
    Parcel* parcel = nullptr;
    {
      Lock lock(mutex_);
      while (!ending_ && parcels_.empty()) changed_.wait(lock.native());
      if (ending_) return;
      parcel = &parcels_.front();  // others are added after it, and only this thread removes it
    }
    const bool received = parcel->message.way == NodeMessage::Way::Receive;
    try {
      if (!parcel->wait(*parcel->head)) return;
      if (received) parcel->requireExpected();
      if (!parcel->wait(*parcel->body)) return;
    } catch (const NodeFailure&) {
      return outcomes_.failed(std::current_exception());
    } catch (const std::exception& error) {
      return outcomes_.lost(parcel->message.node, error.what());
    }
    const int ticket = parcel->ticket, node = parcel->message.node;
    {
      const Lock lock(mutex_);
      parcels_.pop_front();
    }
    outcomes_.done(ticket, node, received);
  }
}

}  // namespace muster
