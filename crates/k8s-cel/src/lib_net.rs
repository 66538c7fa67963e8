//! IP addresses and networks.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::budget::CelBudget;
use super::fault::{CelResult, EvaluationError};
use super::library::{Function, OverloadResult};
use super::release::KubernetesRelease;
use super::value::CelValue;
use crate::golang::ip::Ip;
use crate::gotext::quote;

/// The first release in which a network contains all smaller ones inside. Before, it contains those that begin at its
/// own address.
const NETWORKS_CONTAIN_PARTS: KubernetesRelease = KubernetesRelease::minor(32);

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("ip", 1, ip),
    Function::global("isIP", 1, is_ip),
    Function::global("ip.isCanonical", 1, is_canonical),
    Function::member("family", 1, family),
    Function::member("isUnspecified", 1, |args, _| test(args, Ip::is_unspecified)),
    Function::member("isLoopback", 1, |args, _| test(args, Ip::is_loopback)),
    Function::member("isLinkLocalMulticast", 1, |args, _| test(args, Ip::is_link_local_multicast)),
    Function::member("isLinkLocalUnicast", 1, |args, _| test(args, Ip::is_link_local_unicast)),
    Function::member("isGlobalUnicast", 1, |args, _| test(args, Ip::is_global_unicast)),
    Function::global("cidr", 1, cidr),
    Function::global("isCIDR", 1, is_cidr),
    Function::member("containsIP", 2, contains_ip),
    Function::member("containsCIDR", 2, contains_cidr),
    Function::member("ip", 1, |args, _| part(args, |cidr| CelValue::Ip(cidr.address))),
    Function::member("prefixLength", 1, |args, _| part(args, |cidr| CelValue::Int(cidr.prefix.into()))),
    Function::member("masked", 1, |args, _| part(args, |cidr| CelValue::Cidr(cidr.masked()))),
];

impl Ip {
    /// The address as a number, and its width in bits.
    fn bits(self) -> (u128, u32) {
        match self {
            Ip::V4(address) => (address.to_bits().into(), 32),
            Ip::V6(address) => (address.to_bits(), 128),
        }
    }

    /// The address with all but the first `prefix` bits cleared.
    fn masked(self, prefix: u32) -> Ip {
        let (bits, width) = self.bits();
        let kept = match width - prefix {
            128 => 0,
            dropped => bits >> dropped << dropped,
        };
        match self {
            Ip::V4(_) => Ip::V4(Ipv4Addr::from_bits(u32::try_from(kept).unwrap_or_default())),
            Ip::V6(_) => Ip::V6(Ipv6Addr::from_bits(kept)),
        }
    }

    fn is_loopback(self) -> bool {
        match self {
            Ip::V4(address) => address.is_loopback(),
            Ip::V6(address) => address.is_loopback(),
        }
    }

    fn is_link_local_unicast(self) -> bool {
        match self {
            Ip::V4(address) => address.is_link_local(),
            Ip::V6(address) => address.is_unicast_link_local(),
        }
    }

    fn is_multicast(self) -> bool {
        match self {
            Ip::V4(address) => address.is_multicast(),
            Ip::V6(address) => address.is_multicast(),
        }
    }

    fn is_unspecified(self) -> bool {
        match self {
            Ip::V4(address) => address.is_unspecified(),
            Ip::V6(address) => address.is_unspecified(),
        }
    }

    fn is_link_local_multicast(self) -> bool {
        match self {
            Ip::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
            Ip::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
        }
    }

    fn is_global_unicast(self) -> bool {
        !self.is_unspecified()
            && self != Ip::V4(Ipv4Addr::BROADCAST)
            && !self.is_loopback()
            && !self.is_multicast()
            && !self.is_link_local_unicast()
    }
}

/// A network, written as an address and a prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: Ip,
    prefix: u32,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Cidr {
    fn masked(self) -> Cidr {
        Cidr { address: self.address.masked(self.prefix), ..self }
    }

    fn contains(self, ip: Ip) -> bool {
        self.address.bits().1 == ip.bits().1 && self.address.masked(self.prefix) == ip.masked(self.prefix)
    }
}

fn is_mapped(ip: Ip) -> bool {
    matches!(ip, Ip::V6(address) if address.to_ipv4_mapped().is_some())
}

/// Parses an address; the error is the server's text.
fn parse_ip(text: &str) -> std::result::Result<Ip, String> {
    if let Some((address, zone)) = text.split_once('%')
        && matches!(Ip::parse(address), Ok(Ip::V6(_)))
        && !zone.is_empty()
    {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    let ip = Ip::parse(text).map_err(|why| {
        format!(
            "IP Address {} parse error during conversion from string: ParseAddr({}): {why}",
            quote(text),
            quote(text)
        )
    })?;
    match is_mapped(ip) {
        true => Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))),
        false => Ok(ip),
    }
}

/// Parses a network; the error is the server's text.
fn parse_cidr(text: &str) -> std::result::Result<Cidr, String> {
    let fail = |why: String| format!("network address parse error during conversion from string: {why}");
    let prefix_fail = |why: String| fail(format!("netip.ParsePrefix({}): {why}", quote(text)));
    let Some((address, bits)) = text.rsplit_once('/') else { return Err(prefix_fail("no '/'".to_owned())) };
    if let Some((v6, zone)) = address.split_once('%')
        && matches!(Ip::parse(v6), Ok(Ip::V6(_)))
        && !zone.is_empty()
    {
        return Err(prefix_fail("IPv6 zones cannot be present in a prefix".to_owned()));
    }
    let address = Ip::parse(address).map_err(|why| prefix_fail(format!("ParseAddr({}): {why}", quote(address))))?;
    let is_plain = bits.bytes().all(|b| b.is_ascii_digit()) && (bits.len() == 1 || !bits.starts_with('0'));
    let prefix = bits.parse::<u32>().ok().filter(|_| is_plain);
    let prefix = prefix.ok_or_else(|| prefix_fail(format!("bad bits after slash: {}", quote(bits))))?;
    if prefix > address.bits().1 {
        return Err(prefix_fail("prefix length out of range".to_owned()));
    }
    match is_mapped(address) {
        true => Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))),
        false => Ok(Cidr { address, prefix }),
    }
}

fn to_cidr(text: &str) -> CelResult<Cidr> {
    parse_cidr(text).map_err(|why| {
        EvaluationError::error(format!("network address parse error during conversion from string: {why}"))
    })
}

/// Charges the cost of parsing a text.
fn read(budget: &mut CelBudget, text: &str) -> CelResult<()> {
    budget.take(2 + text.len() as u64 / 5)
}

fn ip<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::String(text)] = args else { return None };
    if let Err(fault) = read(budget, text) {
        return Some(Err(fault));
    }
    Some(parse_ip(text).map(CelValue::Ip).map_err(EvaluationError::Error))
}

fn is_ip<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::String(text)] = args else { return None };
    Some(read(budget, text).map(|()| CelValue::Bool(parse_ip(text).is_ok())))
}

fn is_canonical<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::String(text)] = args else { return None };
    if let Err(fault) = read(budget, text) {
        return Some(Err(fault));
    }
    Some(parse_ip(text).map(|ip| CelValue::Bool(ip.to_string() == **text)).map_err(EvaluationError::Error))
}

fn test<'a>(args: &[CelValue<'a>], test: fn(Ip) -> bool) -> OverloadResult<'a> {
    let [CelValue::Ip(ip)] = args else { return None };
    Some(Ok(CelValue::Bool(test(*ip))))
}

fn family<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::Ip(ip)] = args else { return None };
    Some(Ok(CelValue::Int(if matches!(ip, Ip::V4(_)) { 4 } else { 6 })))
}

fn cidr<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::String(text)] = args else { return None };
    Some(read(budget, text).and_then(|()| to_cidr(text)).map(CelValue::Cidr))
}

fn is_cidr<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::String(text)] = args else { return None };
    Some(read(budget, text).map(|()| CelValue::Bool(parse_cidr(text).is_ok())))
}

fn contains_ip<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    if let Err(fault) = budget.take(20) {
        return Some(Err(fault));
    }
    Some(match args {
        [CelValue::Cidr(cidr), CelValue::Ip(ip)] => Ok(CelValue::Bool(cidr.contains(*ip))),
        // The server does not report the error in the address.
        [CelValue::Cidr(cidr), CelValue::String(text)] => {
            parse_ip(text).map(|ip| CelValue::Bool(cidr.contains(ip))).map_err(|_| EvaluationError::no_such_overload())
        }
        _ => return None,
    })
}

fn contains_cidr<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    if let Err(fault) = budget.take(20) {
        return Some(Err(fault));
    }
    let (outer, inner) = match args {
        [CelValue::Cidr(outer), CelValue::Cidr(inner)] => (outer, Ok(*inner)),
        [CelValue::Cidr(outer), CelValue::String(text)] => (outer, to_cidr(text)),
        _ => return None,
    };
    Some(inner.map(|inner| {
        let is_inside = match budget.release() < NETWORKS_CONTAIN_PARTS {
            true => outer.masked().address == inner.address,
            false => outer.contains(inner.address),
        };
        CelValue::Bool(outer.prefix <= inner.prefix && is_inside)
    }))
}

fn part<'a>(args: &[CelValue<'a>], part: fn(Cidr) -> CelValue<'static>) -> OverloadResult<'a> {
    let [CelValue::Cidr(cidr)] = args else { return None };
    Some(Ok(part(*cidr)))
}
