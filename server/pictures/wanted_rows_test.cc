#include "server/pictures/wanted_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace saccade::server {
namespace {

using ::testing::ElementsAre;

TEST(WantedRowsTest, NoRowFollowsTheErrorThatEndsTheCall) {
  for (const int64_t last : {0, 1, 7}) {
    int64_t asked = 0;
    int64_t rows = 0;
    int64_t rows_before = -1;
    const StillWanted wanted = [&] {
      if (asked++ < last) return absl::OkStatus();
      rows_before = rows;
      return absl::CancelledError("left");
    };
    EXPECT_EQ(ForWantedRows(1'000, kValuesBetweenQuestions / 4, wanted, [&](int64_t) { ++rows; }),
              absl::CancelledError("left"));
    EXPECT_EQ(asked, last + 1);
    EXPECT_EQ(rows_before, 4 * last);
    EXPECT_EQ(rows, rows_before) << "rows worked on after the call had ended";
  }
}

TEST(WantedRowsTest, ItIsAskedForAsManyValuesAsAreWorkedOnInAMillisecond) {
  const auto questions = [](int64_t rows, int64_t values_of_row) {
    int64_t asked = 0;
    const StillWanted wanted = [&] {
      ++asked;
      return absl::OkStatus();
    };
    EXPECT_TRUE(ForWantedRows(rows, values_of_row, wanted, [](int64_t) {}).ok());
    return asked;
  };
  EXPECT_EQ(questions(10, kValuesBetweenQuestions), 10);
  EXPECT_EQ(questions(10, 3 * kValuesBetweenQuestions), 10) << "a row is not divided";
  EXPECT_EQ(questions(10, kValuesBetweenQuestions / 2), 5);
  EXPECT_EQ(questions(10, kValuesBetweenQuestions / 2 + 1), 10);
  EXPECT_EQ(questions(10, 1), 1);
  EXPECT_EQ(questions(0, 1), 0);
  EXPECT_EQ(questions(1, 0), 1);
}

TEST(WantedRowsTest, WithoutAQuestionAllRowsAreWorkedOn) {
  std::vector<int64_t> rows;
  EXPECT_TRUE(
      ForWantedRows(3, kValuesBetweenQuestions, nullptr, [&](int64_t row) { rows.push_back(row); }).ok());
  EXPECT_THAT(rows, ElementsAre(0, 1, 2));
}

TEST(WantedRowsTest, PiecesAreAllValuesInTheirOrder) {
  for (const int64_t values :
       {int64_t{0}, int64_t{1}, kValuesBetweenQuestions, 2 * kValuesBetweenQuestions + 3}) {
    int64_t asked = 0;
    int64_t next = 0;
    const StillWanted wanted = [&] {
      ++asked;
      return absl::OkStatus();
    };
    EXPECT_TRUE(ForWantedPieces(values, wanted, [&](int64_t begin, int64_t count) {
                  EXPECT_EQ(begin, next);
                  EXPECT_GT(count, 0);
                  next += count;
                }).ok());
    EXPECT_EQ(next, values);
    EXPECT_EQ(asked, (values + kValuesBetweenQuestions - 1) / kValuesBetweenQuestions);
  }
}

}  // namespace
}  // namespace saccade::server
