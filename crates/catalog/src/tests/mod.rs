mod ranges;
mod reading;
mod resolving;
