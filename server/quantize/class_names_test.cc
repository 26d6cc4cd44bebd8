#include "server/quantize/class_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const ClassNames& classes, absl::string_view label) {
  return std::string(classes.Find(label).status().message());
}

TEST(ClassNamesTest, ALabelIsANameOrANumber) {
  const ClassNames classes({"cat", "1", "dog"}, 3);
  EXPECT_EQ(classes.Find("dog").value_or(-1), 2);
  EXPECT_EQ(classes.Find("2").value_or(-1), 2);
  EXPECT_EQ(classes.Find("0").value_or(-1), 0);
  EXPECT_EQ(classes.Find("1").value_or(-1), 1) << "a name, and the number";
  EXPECT_EQ(ClassNames({"one", "0"}, 2).Find("0").value_or(-1), 1) << "a name comes first";
  EXPECT_EQ(ClassNames({}, 10).Find("9").value_or(-1), 9);
}

TEST(ClassNamesTest, WhatIsNoClassIsTold) {
  const ClassNames classes({"crane", "cat", "crane"}, 3);
  EXPECT_THAT(ErrorOf(classes, "3"),
              HasSubstr("the class 3 is out of range; the model has 3 classes; expected a "
                        "number from 0 to 2"));
  EXPECT_THAT(ErrorOf(classes, "-1"), HasSubstr("out of range"));
  EXPECT_THAT(ErrorOf(classes, "bird"),
              HasSubstr("the label 'bird' is no class of the model; expected a name "
                        "as in the model's labels, or a number from 0 to 2"));
  EXPECT_THAT(ErrorOf(classes, "crane"), HasSubstr("is the name of several classes"));
  EXPECT_THAT(ErrorOf(ClassNames({}, 3), "cat"), HasSubstr("expected a number from 0 to 2"));
}

}  // namespace
}  // namespace saccade::server
