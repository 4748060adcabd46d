"""Abbreviations with a period, by language: what spaCy's tokenizers lack, in lower case."""


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENDINGS = _split(
    """
    a.m. p.m. corp. etc. inc. jr. ltd. usw. u.s.w. ecc. enz. osv. itd. itp. atd. stb. т.д. т.п.
    κ.λπ. κ.ά. km. cm. mm. kg. км. см. кг.
    """
)
"""They end a sentence if a capital follows."""

TITLES = _split(
    """
    dr. prof. st. mr. mrs. ms. jr. sr. vs. vol. p. pp. cf. ca. fig. ed. eds. gen. col. lt. capt.
    rev.
    """
)
"""Of all languages."""

ABBREVIATIONS = {
    "en": _split(
        """
        mt. ft. sgt. cpl. maj. cmdr. adm. hon. messrs. viz. approx. dept. est. al. op. cit. r. c.
        """
    ),
    "de": _split(
        """
        bzw. ca. d.h. evtl. geb. gest. hl. hrsg. inkl. jh. jhd. jhdt. nr. s. sog. u.a. v. vgl.
        z.b. zit.
        """
    ),
    "fr": _split(
        """
        m. mm. mme. mlle. me. mgr. p. art. chap. env. éd. hab. ex. tél. vol. av. apr. s. ss. n.
        """
    ),
    "it": _split(
        """
        sig. sigg. dott. dr. ing. avv. prof. on. mons. pag. pagg. es. ecc. art. cap. sec. ca. n.
        s. ss. a.c. d.c. km. cfr. vol. ed.
        """
    ),
    "es": _split(
        """
        ee. uu. sr. sra. srta. dr. dra. ud. uds. vd. vds. d. dña. pág. págs. núm. art. aprox. ej.
        etc. av. s. a.c. d.c.
        """
    ),
    "pt": _split(
        """
        sr. sra. dr. dra. exmo. exma. pág. págs. núm. art. prof. profa. av. s. sta. sto. d. a.c.
        d.c. séc.
        """
    ),
    "pl": _split(
        """
        al. dr. gen. hab. im. inż. itd. itp. km. lic. m.in. mgr. np. nr. ok. os. pl. płk. por.
        prof. r. red. ks. św. tj. tzn. tzw. ul. w. wg. ww. zob. ur. zm.
        """
    ),
    "cs": _split(
        """
        apod. atd. atp. č. doc. dr. fr. gen. hl. ing. jr. kap. mgr. mj. mudr. např. nar. obr.
        odst. okr. phdr. pol. popř. pplk. prof. r. resp. sb. st. str. sv. tj. tzn. tzv. ul. zn.
        zvl. viz. zemř.
        """
    ),
    "sk": _split(
        """
        atď. č. doc. dr. ing. mgr. napr. nar. okr. prof. r. resp. sv. str. st. tj. tzn. tzv. ul.
        """
    ),
    "ru": _split(
        """
        г. гг. в. вв. н.э. т.е. т.к. т.н. т. тт. им. ул. др. проф. акад. стр. рис. см. род. ум.
        тыс. млн. млрд. руб. св. кв. км. ок. напр. англ. лат. фр. нем. греч. итал. др.-греч. пос.
        дер. обл. р-н.
        """
    ),
    "uk": _split(
        """
        р. рр. ст. ім. вул. проф. акад. див. напр. тис. млн. млрд. св. нар. пом. с. м. обл. англ.
        лат. та. ін.
        """
    ),
    "bg": _split(
        """
        г. г-н. г-жа. проф. акад. ул. св. т.е. т.н. напр. вж. др. гр. с. р.
        """
    ),
    "el": _split(
        """
        κ. κα. κος. σελ. αρ. π.χ. μ.χ. δηλ. βλ. πρβλ. αγ. στρ. καθ.
        """
    ),
    "hu": _split(
        """
        dr. prof. pl. stb. ún. kb. sz. szt. id. ifj. özv. vö. ld. u. old. évf. ill.
        """
    ),
    "tr": _split(
        """
        dr. prof. doç. av. vb. vs. yy. bkz. örn. sn. st. cad. sok. mah. no. hz. yrd.
        """
    ),
    "nl": _split(
        """
        dhr. mevr. mw. drs. ir. mr. dr. prof. bijv. bv. blz. ca. d.w.z. enz. e.d. m.b.t. nl. nr.
        o.a. st. v. chr.
        """
    ),
    "sv": _split(
        """
        bl.a. ca. d.v.s. dr. e.d. f.d. f.ö. fr. kl. kr. nr. o.s.v. prof. resp. s.k. st. t.ex.
        t.o.m. f. m.fl.
        """
    ),
    "hi": _split(
        """
        डॉ. श्री. प्रो. पं. सं. कि. मी. रु.
        """
    ),
    "he": _split(
        """
        ד. פרופ. ר. גב.
        """
    ),
    "id": _split(
        """
        dr. drs. ir. prof. no. hlm. jl. tgl. st. dll. dsb.
        """
    ),
    "vi": _split(
        """
        ts. gs. pgs. ths. tp. q. p. st. tk.
        """
    ),
    "ro": _split(
        """
        dr. prof. nr. str. pag. ex. etc. art. d-l. d-na. sf. jud. î.hr. d.hr. ing.
        """
    ),
}
"""Code of a language -> its abbreviations."""
