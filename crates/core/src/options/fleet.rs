//! Options for deploys to many clusters: shards and waves.

use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

use super::InvalidOption;

/// `I/N`: every `N`th cluster, starting with the one at index `I`. The index starts at 0, like the completion index of
/// a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    of: NonZero<usize>,
}

impl Shard {
    /// Whether the cluster at this index is in the shard.
    pub fn has(self, index: usize) -> bool {
        index % self.of == self.index
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        let wrong = || format!("{text:?} is not INDEX/SHARDS, for example 0/10 for the first of ten shards");
        let (index, of) = text.split_once('/').ok_or_else(wrong)?;
        let (index, of): (usize, NonZero<usize>) =
            (index.parse().map_err(|_| wrong())?, of.parse().map_err(|_| wrong())?);
        match index < of.get() {
            true => Ok(Shard { index, of }),
            false => Err(format!("there is no shard {index} of {of}: shards are numbered from 0").into()),
        }
    }
}

/// `1,10%,100%`: the number or share of all clusters that are deployed to after each wave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waves(Vec<Upto>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upto {
    Number(usize),
    /// A percentage, rounded up to whole clusters.
    Share(usize),
}

impl Upto {
    fn clusters_reached(self, clusters: usize) -> usize {
        match self {
            Upto::Number(number) => number.min(clusters),
            Upto::Share(share) => clusters.saturating_mul(share).div_ceil(100),
        }
    }
}

impl FromStr for Waves {
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        let upto = |part: &str| {
            let wrong = || format!("{part:?} is neither a number of clusters nor a share from 1% to 100%");
            match part.strip_suffix('%') {
                Some(share) => {
                    share.parse().ok().filter(|share| (1..=100).contains(share)).map(Upto::Share).ok_or_else(wrong)
                }
                None => part.parse().ok().filter(|number| *number > 0).map(Upto::Number).ok_or_else(wrong),
            }
        };
        let waves = text.split(',').map(|part| upto(part.trim())).collect::<Result<Vec<Upto>, String>>()?;
        let falls = |pair: &[Upto]| match pair {
            [Upto::Number(before), Upto::Number(after)] | [Upto::Share(before), Upto::Share(after)] => before >= after,
            _ => false,
        };
        match waves.windows(2).any(falls) {
            true => Err(format!("each wave of {text:?} must reach more clusters than the one before it").into()),
            false => Ok(Waves(waves)),
        }
    }
}

impl Waves {
    /// The number of clusters in each wave. A wave that would reach no more clusters than the one before it is left
    /// out.
    ///
    /// # Errors
    /// The last wave does not reach all clusters.
    pub fn sizes(&self, clusters: usize) -> Result<Vec<usize>, InvalidOption> {
        let mut reached = 0;
        let mut sizes = Vec::new();
        for wave in &self.0 {
            let upto = wave.clusters_reached(clusters);
            if upto > reached {
                sizes.push(upto - reached);
                reached = upto;
            }
        }
        match reached == clusters {
            true => Ok(sizes),
            false => Err(format!("the last wave reaches {reached} of {clusters} clusters").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cluster_is_in_one_shard() {
        let shards = ["0/3", "1/3", "2/3"].map(|text| text.parse::<Shard>().unwrap());
        for index in 0..20 {
            assert_eq!(shards.iter().filter(|shard| shard.has(index)).count(), 1, "{index}");
        }
        assert!(shards[1].has(4) && "0/1".parse::<Shard>().unwrap().has(4));
        for wrong in ["", "1", "3/3", "0/0", "-1/3", "a/b", "1/2/3"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_wave_ends_at_a_larger_share_of_the_clusters() {
        let sizes = |waves: &str, clusters| waves.parse::<Waves>().unwrap().sizes(clusters);
        assert_eq!(sizes("1,10%,100%", 50), Ok(vec![1, 4, 45]));
        assert_eq!(sizes("1,10%,100%", 5), Ok(vec![1, 4]), "10% of five clusters is the one cluster of the first wave");
        assert_eq!(sizes("1,10%,100%", 1), Ok(vec![1]));
        assert_eq!(sizes("2,7", 7), Ok(vec![2, 5]));
        assert_eq!(sizes("100%", 0), Ok(vec![]));
        assert_eq!(sizes("33%,100%", 10), Ok(vec![4, 6]), "rounded up");
        assert_eq!(sizes("1,10%", 50), Err("the last wave reaches 5 of 50 clusters".into()));
        for wrong in ["", "0", "101%", "0%", "1,1", "20%,10%", "5,3,100%", "1,,2", "x", "-1", "1.5"] {
            assert!(wrong.parse::<Waves>().is_err(), "{wrong}");
        }
    }
}
