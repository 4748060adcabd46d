"""Abbreviations with a period, by language: what spaCy's tokenizers lack, in lower case."""


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENDINGS = _split(
    """
    a.m. p.m. corp. etc. inc. jr. ltd. usw. u.s.w. u.ä. o.ä. ecc. enz. osv. o.s.v. m.m.
    m.fl. itd. itp. atd. stb. v.v. dsb. dst. dll. jne. jms. u.c. etj. h.k. ens. ktp. т.д. т.п.
    κ.λπ. κ.ά. km. cm. mm. kg. км. см. кг. лв. ден. дин. чел.
    """
)
"""They end a sentence if a capital follows."""

TITLES = _split(
    """
    dr. prof. st. mr. mrs. ms. jr. sr. vs. vol. p. pp. cf. ca. fig. ed. eds. gen. col. lt. capt.
    rev. проф. акад. инж.
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
        z.b. zit. med. phil. jur. rer. nat. habil. theol. dipl. mag. univ. abs. bspw. ggf. gem. lt.
        mio. mrd.
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
        лат. та. ін. рис. стор. табл. мал. див.
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
        bl.a. ca. d.v.s. dr. e.d. f.d. f.ö. fr. kl. kr. nr. prof. resp. s.k. st. t.ex. t.o.m. f.
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
        dr. drs. ir. prof. no. hlm. jl. tgl. st.
        """
    ),
    "vi": _split(
        """
        ts. gs. pgs. ths. tp. q. p. st. tk.
        """
    ),
    "ro": _split(
        """
        dr. prof. nr. str. pag. ex. art. d-l. d-na. dl. dna. cca. sf. jud. î.hr. d.hr. ing.
        """
    ),
    "af": _split(
        """
        mnr. mev. mej. dr. prof. bv. nl. bl. nr. st. ds.
        """
    ),
    "ca": _split(
        """
        sr. sra. dr. dra. pàg. pàgs. núm. art. cap. av. st. sta. aprox. ed. vol. ex.
        """
    ),
    "cy": _split(
        """
        dr. y.b. e.e. h.y. gw. tud. st.
        """
    ),
    "eo": _split(
        """
        d-ro. s-ro. prof. ekz. t.e. p. vd. kp. n-ro. k.a.
        """
    ),
    "et": _split(
        """
        dr. prof. nt. s.o. vt. lk. nr. tn. mnt. pst. snd. surn. sünd. hr. pr. u. jt. st.
        """
    ),
    "eu": _split(
        """
        jn. and. dr. prof. adib. or. orr. zk.
        """
    ),
    "gl": _split(
        """
        sr. sra. dr. dra. páx. páxs. núm. art. aprox. s. d. sta.
        """
    ),
    "gu": _split(
        """
        શ્રી. પ્રો. ડૉ. રૂ.
        """
    ),
    "hr": _split(
        """
        npr. tzv. god. st. str. br. sv. mr. gosp. gđa. ul. odn. ak. tj. vidi. usp. r.
        """
    ),
    "is": _split(
        """
        t.d. þ.e. u.þ.b. kl. nr. bls. sr. hr. dr. prof.
        """
    ),
    "kk": _split(
        """
        ж. т. т.б. қ. теңге. бет. мыс.
        """
    ),
    "lt": _split(
        """
        pvz. kt. t.y. g. pr. m. d. gim. mir. žr. prof. doc. vyr. nr. vad. šv.
        """
    ),
    "lv": _split(
        """
        piem. t.i. sal. dz. skat. prof. plkst. nr. lpp. sv. t.s.
        """
    ),
    "mk": _split(
        """
        проф. ул. бр. стр. св. год. т.е. т.н. пр. д-р.
        """
    ),
    "ml": _split(
        """
        ശ്രീ. പ്രൊഫ. ഡോ. രൂ.
        """
    ),
    "mr": _split(
        """
        प्रा. श्री. सौ. इ.स. डॉ. रु. उदा.
        """
    ),
    "ne": _split(
        """
        प्रा. श्री. डा. रु. वि.सं. सं.
        """
    ),
    "sl": _split(
        """
        npr. oz. tj. mag. sv. ul. str. št. gl. dr. prof. t.i. roj.
        """
    ),
    "sq": _split(
        """
        p.sh. dmth. nr. rr. z. znj. fq. sh.
        """
    ),
    "sr": _split(
        """
        нпр. тзв. год. стр. бр. св. др. мр. ул. тј. одн. види. npr. tzv. god. str. br. sv. ul. tj.
        """
    ),
    "sw": _split(
        """
        dkt. bw. bi. sh. uk. mf. n.k.
        """
    ),
    "ta": _split(
        """
        திரு. டாக். ரூ. எ.கா. கி.பி. கி.மு.
        """
    ),
    "te": _split(
        """
        శ్రీ. డా. రూ. ఉదా.
        """
    ),
    "kn": _split(
        """
        ಶ್ರೀ. ಡಾ. ರೂ. ಪ್ರೊ. ಉದಾ.
        """
    ),
}
"""Code of a language -> its abbreviations."""
